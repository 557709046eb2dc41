// SPDX-License-Identifier: Apache-2.0
#include "measure/timing.h"

#include "measure/race.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace purlin::measure {
namespace {

// Batches in turn without a single usable time, after which the clock is taken not to work.
constexpr int kMaxUseless = 3;
constexpr int kMaxLaunchesPerSample = 10'000;
// More than two events around a launch add to its time; 4 us on an H200.
constexpr double kEventsMs = 0.01;

double fastest_ms(const std::vector<Sample>& samples) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Sample& sample : samples) fastest = std::min(fastest, sample.ms);
  return fastest;
}

// One kernel under the stopwatch.
class Stopwatch {
 public:
  Stopwatch(gpu::Device& device, const gpu::Launch& launch, const Policy& policy,
            const Restore& restore, Clock& clock)
      : device_(device), launch_(launch), policy_(policy), restore_(restore), clock_(clock) {}

  Result<Timing> run() {
    start_ns_ = clock_.monotonic_ns();
    PURLIN_TRY(warm_up());
    Timing timing;
    timing.launches_per_sample = launches_;
    const auto name_method = [&] { this->name_method(timing); };
    std::vector<Sample>& samples = timing.samples;
    const std::size_t most = static_cast<std::size_t>(std::max(policy_.max_samples, 1));
    const std::size_t least =
        std::min(static_cast<std::size_t>(std::max(policy_.min_samples, 1)), most);
    while (samples.size() < most) {
      const bool enough = samples.size() >= least;
      PURLIN_ASSIGN(const std::vector<Sample> batch,
                    take(samples_wanted(samples.size(), policy_), enough ? remaining_s() : 0));
      samples.insert(samples.end(), batch.begin(), batch.end());
      name_method();
      const Standing now = standing(samples, policy_);
      timing.gave_up = now == Standing::kHopeless;
      if (now != Standing::kOpen) break;
      if (samples.size() >= least && seconds_since(start_ns_) >= policy_.budget_s) break;
    }
    return timing;
  }

  Result<Timing> batch(Pace& pace) {
    sleeps_ = true;
    Timing timing;
    if (pace.launches == 0) {
      PURLIN_TRY(find_pace(pace));
      return timing;
    }
    timing.launches_per_sample = launches_ = pace.launches;
    const double fit = kBatchMs / std::max(pace.sample_ms, 1e-3);
    const int count = static_cast<int>(std::clamp(fit, 1.0, 1.0 + kBatchSamples));
    PURLIN_ASSIGN(timing.samples, take(count, 0));
    // Another kernel ran before the first, and left the caches as it does.
    if (timing.samples.size() > 1) timing.samples.erase(timing.samples.begin());
    name_method(timing);
    return timing;
  }

 private:
  void name_method(Timing& timing) const {
    timing.how = device_.how();
    if (launches_ > 1) timing.how += fmt::format(" x{}", launches_);
    timing.left_out = left_out_;
  }

  // One launch; of a short kernel also the few that show how many a sample needs.
  Status find_pace(Pace& pace) {
    start_ns_ = clock_.monotonic_ns();
    if (restore_) PURLIN_TRY(restore_());
    PURLIN_TRY(device_.run(launch_));
    double ms = seconds_since(start_ns_) * 1e3;
    if (ms < kBatchMs / 2) {
      PURLIN_ASSIGN(const std::vector<Sample> once, take(1, 0));
      ms = fastest_ms(once);
      PURLIN_TRY(choose_launches(ms));
    }
    pace = {launches_, ms * launches_};
    return Status::ok();
  }

  double seconds_since(std::int64_t ns) const {
    return static_cast<double>(clock_.monotonic_ns() - ns) * 1e-9;
  }
  double remaining_s() const { return std::max(policy_.budget_s - seconds_since(start_ns_), 1e-6); }

  // An untimed first launch, then timed ones that are discarded. They also show how many launches a
  // sample needs. The warm-up of a kernel far slower than the best is short.
  Status warm_up() {
    if (!device_.executes()) return Status::ok();  // a recording has no warm-up in it
    if (restore_) PURLIN_TRY(restore_());
    PURLIN_TRY(device_.run(launch_));
    std::vector<Sample> seen;
    for (int i = 1; i < std::max(policy_.warmup_launches, 2); ++i) {
      PURLIN_ASSIGN(const std::vector<Sample> batch, take(1, 0));
      seen.insert(seen.end(), batch.begin(), batch.end());
      // The rival may have been timed as a graph, without what two events cost.
      const double events_ms = device_.has_graphs() ? kEventsMs : 0;
      if (policy_.give_up_ms > 0 && fastest_ms(seen) > policy_.give_up_ms * 2 + events_ms)
        return Status::ok();
      if (seconds_since(start_ns_) >= policy_.budget_s) return Status::ok();
    }
    return choose_launches(fastest_ms(seen));
  }

  // Grows the number of launches until a sample is long enough for the device's clock. A sample
  // that starts from a flushed cache cannot be repeated back to back.
  Status choose_launches(double estimate_ms) {
    if (policy_.flush_l2) return Status::ok();
    // The more launches follow a restore, the less their contents resemble a program's.
    const double least_ms = device_.has_graphs() && !restore_
                                ? std::max(policy_.graph_sample_ms, policy_.min_sample_ms)
                                : policy_.min_sample_ms;
    for (int round = 0; round < 4 && estimate_ms * launches_ < least_ms; ++round) {
      const double needed = least_ms / std::max(estimate_ms, 1e-6);
      launches_ = static_cast<int>(
          std::clamp(std::ceil(needed * 1.1), 2.0, static_cast<double>(kMaxLaunchesPerSample)));
      // A graph's launches are the same each time, so it takes each set of inputs equally often.
      if (const int sets = 1 + static_cast<int>(launch_.further_arguments.size());
          sets > 1 && device_.has_graphs())
        launches_ = (launches_ + sets - 1) / sets * sets;
      PURLIN_ASSIGN(const std::vector<Sample> batch, take(1, 0));
      estimate_ms = fastest_ms(batch);
    }
    return Status::ok();
  }

  // A clock may step back for once. What it shows then is no time, and another sample is taken.
  Result<std::vector<Sample>> take(int count, double budget_s) {
    double seen_ms = 0;
    for (int useless = 0; useless < kMaxUseless; ++useless) {
      PURLIN_ASSIGN(std::vector<Sample> samples, take_raw(count, budget_s));
      seen_ms = samples.front().ms;
      left_out_ += static_cast<int>(std::erase_if(samples, [](const Sample& sample) {
        return !(sample.ms >= 0 && sample.ms <= kMostMs);  // 0: the clock is coarse
      }));
      if (!samples.empty()) return samples;
    }
    return error(
        Code::kUnavailable,
        "the clock of {} measured {:g} ms for a launch, {} times in turn: it does not work",
        device_.info().id, seen_ms, kMaxUseless);
  }

  Result<std::vector<Sample>> take_raw(int count, double budget_s) {
    gpu::TimingRequest request;
    request.samples = count;
    request.launches_per_sample = launches_;
    request.flush_l2 = policy_.flush_l2;
    request.budget_s = budget_s;
    request.graph = launches_ > 1 && device_.has_graphs();
    request.sleeps = sleeps_;
    if (restore_) {
      request.samples = 1;
      PURLIN_TRY(restore_());
    }
    PURLIN_ASSIGN(std::vector<Sample> samples, device_.time(launch_, request));
    if (samples.empty()) return error(Code::kFailed, "the device returned no timing sample");
    double clock_mhz = -1;
    for (Sample& sample : samples) {
      if (sample.sm_clock_mhz > 0) continue;
      if (clock_mhz < 0) clock_mhz = device_.current_clock_mhz();
      sample.sm_clock_mhz = clock_mhz;
    }
    return samples;
  }

  gpu::Device& device_;
  const gpu::Launch& launch_;
  const Policy& policy_;
  const Restore& restore_;
  Clock& clock_;
  std::int64_t start_ns_ = 0;
  int launches_ = 1, left_out_ = 0;
  bool sleeps_ = false;
};

struct Field {
  const char* name;
  double low, high;
};

Result<double> number(const Json& json, const Field& field, double fallback) {
  const Json* value = json.find(field.name);
  if (value == nullptr) return fallback;
  const double x = value->as_double(std::nan(""));
  if (!(x >= field.low && x <= field.high))
    return error(Code::kInvalid, "policy: '{}' must be a number from {} to {}", field.name,
                 field.low, field.high);
  return x;
}

Result<int> whole(const Json& json, const Field& field, int fallback) {
  PURLIN_ASSIGN(const double x, number(json, field, fallback));
  if (x != std::floor(x))
    return error(Code::kInvalid, "policy: '{}' must be a whole number", field.name);
  return static_cast<int>(x);
}

}  // namespace

Result<Timing> time_kernel(gpu::Device& device, const gpu::Launch& launch, const Policy& policy,
                           const Restore& restore, Clock& clock) {
  return Stopwatch(device, launch, policy, restore, clock).run();
}

Result<Timing> time_batch(gpu::Device& device, const gpu::Launch& launch, const Policy& policy,
                          Pace& pace, const Restore& restore, Clock& clock) {
  return Stopwatch(device, launch, policy, restore, clock).batch(pace);
}

Interval median_interval_ms(const std::vector<Sample>& samples, double confidence) {
  if (samples.empty()) return {};
  std::vector<double> sorted;
  sorted.reserve(samples.size());
  for (const Sample& sample : samples) sorted.push_back(sample.ms);
  std::sort(sorted.begin(), sorted.end());
  // The largest k with P(B < k) <= half of what the confidence leaves, for B ~ Binomial(n, 1/2):
  // the k-th smallest and the k-th largest sample then enclose the median. In logarithms: 2^-n
  // underflows.
  const double tail = (1 - confidence) / 2;
  const double n = static_cast<double>(sorted.size());
  double below = 0;
  std::size_t k = 0;
  while (k < sorted.size() / 2) {
    const double i = static_cast<double>(k);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) -
                      n * std::log(2.0));
    if (below > tail) break;
    ++k;
  }
  const std::size_t rank = std::max<std::size_t>(k, 1);  // too few samples: the full range
  return {sorted[rank - 1], sorted[sorted.size() - rank]};
}

Json to_json(const Policy& policy) {
  Json json = Json::object({{"warmup_launches", policy.warmup_launches},
                            {"min_samples", policy.min_samples},
                            {"max_samples", policy.max_samples},
                            {"budget_s", policy.budget_s},
                            {"target_error", policy.target_error},
                            {"min_sample_ms", policy.min_sample_ms},
                            {"graph_sample_ms", policy.graph_sample_ms},
                            {"flush_l2", policy.flush_l2},
                            {"give_up_ms", policy.give_up_ms},
                            {"noise", policy.noise}});
  if (policy.inputs != Policy::Inputs::kAsSpec)
    json.set("inputs", policy.inputs == Policy::Inputs::kRotate ? "rotate" : "reuse");
  if (policy.energy_s > 0) json.set("energy_s", policy.energy_s);
  return json;
}

Result<Policy> policy_from_json(const Json& json) {
  if (!json.is_object()) return error(Code::kInvalid, "policy: not an object");
  Policy policy;
  PURLIN_ASSIGN(policy.warmup_launches,
                whole(json, {"warmup_launches", 0, 10'000}, policy.warmup_launches));
  PURLIN_ASSIGN(policy.min_samples,
                whole(json, {"min_samples", 1, kMostSamples}, policy.min_samples));
  PURLIN_ASSIGN(policy.max_samples,
                whole(json, {"max_samples", 1, kMostSamples}, policy.max_samples));
  PURLIN_ASSIGN(policy.budget_s, number(json, {"budget_s", 0, 86'400}, policy.budget_s));
  PURLIN_ASSIGN(policy.target_error, number(json, {"target_error", 0, 1}, policy.target_error));
  PURLIN_ASSIGN(policy.min_sample_ms,
                number(json, {"min_sample_ms", 0, 10'000}, policy.min_sample_ms));
  PURLIN_ASSIGN(policy.energy_s, number(json, {"energy_s", 0, 3600}, policy.energy_s));
  PURLIN_ASSIGN(policy.graph_sample_ms,
                number(json, {"graph_sample_ms", 0, 10'000}, policy.graph_sample_ms));
  PURLIN_ASSIGN(policy.noise, number(json, {"noise", 0, kMaxNoise}, policy.noise));
  PURLIN_ASSIGN(policy.give_up_ms,
                number(json, {"give_up_ms", 0, kMaxGiveUpMs}, policy.give_up_ms));
  if (const Json* flush = json.find("flush_l2"); flush != nullptr) {
    if (!flush->is_bool()) return error(Code::kInvalid, "policy: 'flush_l2' must be true or false");
    policy.flush_l2 = flush->as_bool();
  }
  if (const Json* inputs = json.find("inputs"); inputs != nullptr) {
    if (*inputs == Json("rotate"))
      policy.inputs = Policy::Inputs::kRotate;
    else if (*inputs == Json("reuse"))
      policy.inputs = Policy::Inputs::kReuse;
    else
      return error(Code::kInvalid, "policy: 'inputs' must be \"rotate\" or \"reuse\"");
  }
  if (policy.max_samples < policy.min_samples)
    return error(Code::kInvalid, "policy: max_samples {} is below min_samples {}",
                 policy.max_samples, policy.min_samples);
  return policy;
}

}  // namespace purlin::measure
