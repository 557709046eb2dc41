// SPDX-License-Identifier: Apache-2.0
#include "profile/export/otlp.h"

#include "base/text.h"
#include "base/time.h"
#include "base/version.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace purlin::profile {
namespace {

constexpr int kDelta = 1;  // AGGREGATION_TEMPORALITY_DELTA: a run is a period

constexpr OtlpMetrics::Kind
    kKernels = {"purlin.kernel.duration", "ns", "Time of the launches of a GPU kernel"},
    kCopies = {"purlin.copy.duration", "ns", "Time of memcpy and memset operations"},
    kCopied = {"purlin.copy.bytes", "By", "Bytes moved by them"},
    kWaits = {"purlin.wait.duration", "ns", "Time for which the host waits for a device"},
    kSeen = {"purlin.launches.seen", "{launch}", "Launches whose duration was recorded"},
    kLost = {"purlin.launches.lost", "{launch}", "Launches whose record is missing"},
    kOverhead = {"purlin.overhead", "ns", "Time that the recorder took"};

std::string count_text(double count) { return fmt::format("{:.0f}", std::max(0.0, count)); }

// When the profile was taken, by the launches seen, else by its record.
OtlpPeriod period_of(const Profile& profile) {
  constexpr std::int64_t kWallClock = 1'000'000'000'000'000'000;  // 2001: smaller is another clock
  OtlpPeriod out;
  for (const KernelRow& row : profile.kernels) {
    if (row.first_ns < kWallClock || row.last_ns < row.first_ns) continue;
    out.begin_ns = out.begin_ns > 0 ? std::min(out.begin_ns, row.first_ns) : row.first_ns;
    out.end_ns = std::max(out.end_ns, row.last_ns);
  }
  if (out.end_ns > 0) return out;
  out.end_ns = parse_rfc3339(profile.environment.recorded_at).value_or(0);
  if (out.end_ns <= 0) out.end_ns = system_clock().wall_ns();
  out.begin_ns = std::max<std::int64_t>(1, out.end_ns - std::max<std::int64_t>(0, profile.wall_ns));
  return out;
}

OtlpAttributes resource_of(const Profile& profile) {
  OtlpAttributes out;
  out.add("service.name", "purlin");
  const std::vector<RunLabels> runs = run_labels(profile);
  if (runs.size() == 1) {  // of several, no single one is the resource
    const RunLabels& run = runs.front();
    out.add("host.name", run.host).add("container.id", run.container);
    const std::size_t slash = run.pod.find('/');
    if (slash != std::string::npos) out.add("k8s.namespace.name", run.pod.substr(0, slash));
    out.add("k8s.pod.name", slash == std::string::npos ? run.pod : run.pod.substr(slash + 1));
    out.add("purlin.user", run.user).add("purlin.scheduler", run.scheduler);
    out.add("purlin.job", run.job);
  }
  out.add("os.description", profile.environment.host_os);
  out.add("process.command_line", profile.command);
  out.add("purlin.source", profile.source).add("purlin.build", profile.environment.build);
  return out;
}

class ProfileMetrics {
 public:
  explicit ProfileMetrics(const Profile& profile)
      : profile_(profile), out_(resource_of(profile), period_of(profile)) {}

  Json run() {
    kernels();
    copies();
    waits();
    const Coverage& coverage = profile_.coverage;
    out_.sum(kSeen, {}, coverage.launches_seen);
    out_.sum(kLost, {}, coverage.launches_lost);
    out_.sum(kOverhead, {}, coverage.overhead_ns);
    return out_.request();
  }

 private:
  OtlpAttributes on_device(int device) const {
    OtlpAttributes out;
    const auto& devices = profile_.environment.devices;
    if (device < 0 || static_cast<std::size_t>(device) >= devices.size()) return out;
    const DeviceInfo& one = devices[static_cast<std::size_t>(device)];
    out.add("gpu.id", one.id).add("gpu.name", one.name);
    return out;
  }

  // Rows with one identity are one series: launch shapes are left out, and equal devices of
  // several hosts have one name.
  struct Series {
    OtlpAttributes attributes;
    Sketch durations;
    double bytes = 0;
  };
  using AllSeries = std::map<std::string, Series>;
  static void add(OtlpAttributes attributes, const Sketch& durations, double bytes, AllSeries& to) {
    Series& one = to[attributes.list().dump()];
    one.attributes = std::move(attributes);
    one.durations.merge(durations);
    one.bytes += bytes;
  }

  void kernels() {
    AllSeries all;
    for (const KernelRow& row : profile_.kernels) {
      OtlpAttributes attributes;
      attributes.add("kernel", demangle(row.name)).add("op", row.op).add("shape", row.shape);
      attributes.add("dtype", row.dtype).add("build", row.build).append(on_device(row.device));
      add(std::move(attributes), row.duration, 0, all);
    }
    for (const auto& [key, one] : all) out_.histogram(kKernels, one.attributes, one.durations);
  }

  void copies() {
    AllSeries all;
    for (const CopyRow& copy : profile_.copies)
      add(OtlpAttributes().add("kind", copy.kind).append(on_device(copy.device)), copy.duration,
          copy.bytes, all);
    for (const auto& [key, one] : all) {
      out_.histogram(kCopies, one.attributes, one.durations);
      out_.sum(kCopied, one.attributes, one.bytes);
    }
  }

  void waits() {
    AllSeries all;
    for (const WaitRow& wait : profile_.waits)
      add(OtlpAttributes().add("kind", wait.kind), wait.duration, 0, all);
    for (const auto& [key, one] : all) out_.histogram(kWaits, one.attributes, one.durations);
  }

  const Profile& profile_;
  OtlpMetrics out_;
};

}  // namespace

OtlpAttributes& OtlpAttributes::add(std::string_view key, std::string_view value) {
  if (!value.empty())
    list_.push(Json::object({{"key", key}, {"value", Json::object({{"stringValue", value}})}}));
  return *this;
}
OtlpAttributes& OtlpAttributes::append(const OtlpAttributes& more) {
  for (const Json& one : more.list_.items()) list_.push(one);
  return *this;
}

Json& OtlpMetrics::points_of(const Kind& metric, const char* data) {
  for (Metric& known : metrics_)
    if (known.kind.name == metric.name) return known.points;
  metrics_.push_back({metric, data});
  return metrics_.back().points;
}

Json OtlpMetrics::point(const OtlpAttributes& attributes, bool of_period) const {
  Json out = Json::object();
  if (attributes.list().size() > 0) out.set("attributes", attributes.list());
  if (of_period) out.set("startTimeUnixNano", std::to_string(period_.begin_ns));
  return out.set("timeUnixNano", std::to_string(period_.end_ns));
}

void OtlpMetrics::gauge(const Kind& metric, const OtlpAttributes& attributes, double value) {
  if (std::isfinite(value))
    points_of(metric, "gauge").push(point(attributes, false).set("asDouble", value));
}

void OtlpMetrics::gauge(const Kind& metric, const OtlpAttributes& attributes, std::int64_t value) {
  points_of(metric, "gauge").push(point(attributes, false).set("asInt", std::to_string(value)));
}

void OtlpMetrics::sum(const Kind& metric, const OtlpAttributes& attributes, double value) {
  if (std::isfinite(value) && value >= 0)
    points_of(metric, "sum").push(point(attributes, true).set("asDouble", value));
}

void OtlpMetrics::histogram(const Kind& metric, const OtlpAttributes& attributes,
                            const Sketch& durations) {
  if (durations.empty()) return;
  Json one = point(attributes, true);
  const Json fields = to_otlp_histogram(durations);
  for (const Json::Member& member : fields.members()) one.set(member.key, member.value);
  points_of(metric, "exponentialHistogram").push(std::move(one));
}

Json OtlpMetrics::request() {
  Json metrics = Json::array();
  for (Metric& metric : metrics_) {
    Json data = Json::object({{"dataPoints", std::move(metric.points)}});
    const std::string_view kind = metric.data;
    if (kind != "gauge") data.set("aggregationTemporality", kDelta);
    if (kind == "sum") data.set("isMonotonic", true);
    metrics.push(Json::object({{"name", metric.kind.name},
                               {"description", metric.kind.description},
                               {"unit", metric.kind.unit},
                               {metric.data, std::move(data)}}));
  }
  Json scope = Json::object({{"name", "purlin"}, {"version", version()}});
  Json scoped = Json::object({{"scope", std::move(scope)}, {"metrics", std::move(metrics)}});
  Json resource = Json::object({{"attributes", resource_.list()}});
  return Json::object(
      {{"resourceMetrics",
        Json::array({Json::object({{"resource", std::move(resource)},
                                   {"scopeMetrics", Json::array({std::move(scoped)})}})})}});
}

Json to_otlp_histogram(const Sketch& sketch) {
  // Rounded running totals: the parts add up to the whole.
  double seen = 0, at_most_one = 0;
  const auto rounded = [&](double weight) {
    const double before = std::round(seen);
    seen += weight;
    return std::round(seen) - before;
  };
  int offset = 0;
  std::vector<double> counts;
  for (std::size_t i = 0; i < sketch.buckets().size(); ++i) {
    const int bucket = sketch.first_bucket() + static_cast<int>(i);
    const double count = rounded(sketch.buckets()[i]);
    if (bucket <= 0) {
      at_most_one += count;
      continue;
    }
    const int index = bucket - 1;  // OpenTelemetry counts from 0
    if (counts.empty()) offset = index;
    counts.resize(std::max(counts.size(), static_cast<std::size_t>(index - offset) + 1));
    counts[static_cast<std::size_t>(index - offset)] += count;
  }
  Json buckets = Json::array();
  for (const double count : counts) buckets.push(count_text(count));
  Json out = Json::object({{"count", count_text(std::round(seen))},
                           {"sum", sketch.total_ns()},
                           {"scale", sketch.scale()},
                           {"zeroCount", count_text(at_most_one)},
                           {"zeroThreshold", 1.0}});
  if (!counts.empty())
    out.set("positive", Json::object({{"offset", offset}, {"bucketCounts", std::move(buckets)}}));
  return out.set("min", sketch.min_ns()).set("max", sketch.max_ns());
}

Result<Json> to_otlp(const Profile& profile) {
  if (profile.kernels.empty() && profile.copies.empty() && profile.waits.empty())
    return error(Code::kInvalid,
                 "the profile has no kernels, memcpys or waits: there is nothing to export");
  return ProfileMetrics(profile).run();
}

}  // namespace purlin::profile
