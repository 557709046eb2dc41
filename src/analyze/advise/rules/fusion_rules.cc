// SPDX-License-Identifier: Apache-2.0
// Chains of pointwise kernels: each reads what the one before wrote. Fused, the values in between
// never leave the registers.
#include "analyze/advise/rules.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/streams.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace purlin::analyze {
namespace {

constexpr std::size_t kLongest = 32;  // kernels of one chain: more do not fit in registers
constexpr double kMinEfficiency = 0.5, kFullEfficiency = 1.0;
constexpr double kLaunchFloor = 2'000;  // ns that even an empty kernel takes

struct Pointwise {                   // of a profile row
  double n = 0;                      // elements; 0: it is none
  double in_size = 0, out_size = 0;  // bytes of one element
  double bytes = 0, read = 0, written = 0;
  double inputs = 0;  // of n elements
};

Pointwise pointwise(const KernelRow& row, const KernelStat& stat) {
  const std::string_view c = stat.name.op_class;
  if (c != "elementwise" && c != "copy") return {};
  Problem problem;
  problem.dimensions = dimensions_from_text(row.shape);
  Pointwise out;
  const auto n = static_cast<double>(problem["n"]);
  out.in_size = bytes_per_element(row.dtype);
  if (n <= 0 || out.in_size <= 0 || stat.roof.bytes <= 0) return {};
  out.written = problem["write"] > 0 ? static_cast<double>(problem["write"]) : n * out.in_size;
  out.out_size = out.written / n;
  const auto in = static_cast<double>(problem["in"]);
  const auto inputs = static_cast<double>(std::max<std::int64_t>(1, problem["inputs"]));
  out.read = problem["read"] > 0 ? static_cast<double>(problem["read"])
                                 : out.in_size * (in > 0 ? in : inputs * n);
  // A broadcast input holds fewer elements; what it adds is not a whole one.
  out.inputs = std::floor(out.read / (out.in_size * n));
  if (out.inputs < 1) return {};
  out.bytes = out.read + out.written;
  out.n = n;
  return out;
}

struct Chain {
  std::vector<std::size_t> rows;  // of the profile
  double count = 0, ns = 0, exposed_ns = 0;
};

class FusionRules {
 public:
  FusionRules(const Facts& facts, Advice& advice) : facts_(facts), advice_(advice) {
    for (std::size_t i = 0; i < facts.profile->kernels.size(); ++i)
      rows_.push_back(pointwise(facts.profile->kernels[i], facts.rows.kernels[facts.row_of[i]]));
  }

  void run() {
    const Timeline& timeline = facts_.profile->timeline;
    const HostFacts host(timeline);
    const Streams streams(timeline);
    for (const StreamWork& stream : streams.all()) {
      run_.clear();
      for (const std::uint32_t index : stream.activities) {
        const Activity& activity = timeline.activities[index];
        const bool pointwise = activity.kind == ActivityKind::kKernel &&
                               activity.row < rows_.size() && rows_[activity.row].n > 0;
        if (!pointwise || (!run_.empty() && !follows(host, activity)) || run_.size() == kLongest)
          close();
        if (pointwise) run_.push_back(&activity);
      }
      close();
    }
    for (const auto& [rows, chain] : chains_) estimate(chain);
  }

 private:
  // What the last one wrote may be what this one reads: as many elements of the same size, in the
  // same step and round, and the host did not wait for it.
  bool follows(const HostFacts& host, const Activity& activity) const {
    const Activity& last = *run_.back();
    const Pointwise &a = rows_[last.row], &b = rows_[activity.row];
    if (a.n != b.n || a.out_size != b.in_size) return false;
    if (facts_.row_of[activity.row] == facts_.row_of[run_.front()->row]) return false;
    const auto& steps = facts_.timeline->steps;
    const auto next = std::partition_point(steps.begin(), steps.end(), [&](const StepTime& step) {
      return step.start_ns <= last.start_ns;
    });
    if (next != steps.end() && next->start_ns <= activity.start_ns) return false;
    const auto& calls = facts_.profile->timeline.calls;
    if (last.call >= calls.size() || activity.call >= calls.size()) return true;
    const NamedIntervals& waits = host.process(activity.process).waiting;
    const std::int64_t from = end_of(calls[last.call]), to = begin_of(calls[activity.call]);
    const auto wait = std::partition_point(
        waits.begin(), waits.end(),
        [from](const NamedInterval& interval) { return interval.interval.end <= from; });
    return wait == waits.end() || wait->interval.begin >= to;
  }

  void close() {
    std::set<std::size_t> distinct;
    for (const Activity* activity : run_) distinct.insert(facts_.row_of[activity->row]);
    // One kernel again and again is as likely to work on one tensor after another.
    if (run_.size() >= 2 && distinct.size() >= 2) {
      std::vector<std::size_t> key;
      for (const Activity* activity : run_) key.push_back(facts_.row_of[activity->row]);
      Chain& chain = chains_[key];
      if (chain.rows.empty())
        for (const Activity* activity : run_) chain.rows.push_back(activity->row);
      chain.count += 1;
      for (const Activity* activity : run_) {
        const auto ns = static_cast<double>(std::max<std::int64_t>(0, activity->duration_ns));
        chain.ns += ns;
        chain.exposed_ns += ns * facts_.exposure.share[activity->row];
      }
    }
    run_.clear();
  }

  void estimate(const Chain& chain) {
    const KernelStat& first = facts_.rows.kernels[facts_.row_of[chain.rows.front()]];
    const double bandwidth = facts_.bandwidth_of(first);
    const Ceilings* ceilings = facts_.ceilings_of(first);
    if (bandwidth <= 0 || chain.ns <= 0) return;
    double all = 0, ends = 0, floor_ns = 0;
    for (std::size_t i = 0; i < chain.rows.size(); ++i) {
      const Pointwise& row = rows_[chain.rows[i]];
      all += row.bytes;
      floor_ns += row.bytes / bandwidth * 1e9;
      // Every input but the one from the kernel before; the least: all of them are the first's.
      ends += row.read - (i > 0 ? row.n * row.in_size : 0);
    }
    const Pointwise &head = rows_[chain.rows.front()], &tail = rows_[chain.rows.back()];
    const double max_bytes = ends + tail.written, min_bytes = head.read + tail.written;
    const double each = chain.ns / chain.count;
    const double efficiency = std::clamp(floor_ns / each, kMinEfficiency, facts_.targets.memory);
    const auto saved = [&](double bytes, double share) {
      return each - std::max(kLaunchFloor, bytes / bandwidth * 1e9 / share);
    };
    Interval3 one = {saved(max_bytes, efficiency), saved(max_bytes, facts_.targets.memory),
                     saved(min_bytes, kFullEfficiency)};
    const double between = rows_[chain.rows[1]].n * rows_[chain.rows[1]].in_size;
    const double l2 = ceilings != nullptr ? ceilings->l2_bytes : 0;
    const auto fewer = static_cast<double>(chain.rows.size() - 1);
    const bool cached = l2 > 0 && between < 0.5 * l2;
    if (cached) one.low = std::min(one.low, std::min(fewer * kLaunchFloor, 0.5 * each));
    const Unit& unit = facts_.unit;
    const double per_unit = 1 / (unit.count * unit.devices);
    const Interval3 x = facts_.without_recorder(chain.exposed_ns / chain.ns);
    const double exposed = x.mid;
    Interval3 saved_ns = bounded(one * (chain.count * per_unit), chain.ns * per_unit);
    saved_ns = {saved_ns.low * x.low, saved_ns.mid * x.mid,
                std::min(saved_ns.high, chain.ns * per_unit * x.high)};
    saved_ns = facts_.capped(saved_ns);
    // Where the host sets the pace, each launch less is a call less.
    const RecorderOverhead recorder = recorder_overhead(facts_.profile->source);
    const double call = facts_.timeline->launches.call_p50_ns;
    const double calls = fewer * chain.count * per_unit * (1 - exposed);
    saved_ns = saved_ns + Interval3{0, calls * std::max(0.0, call - recorder.call.mid),
                                    calls * std::max(0.0, call - recorder.call.low)};
    Intervention out = from_remedy("fuse_pointwise");
    for (const std::size_t row : chain.rows)
      out.kernels.push_back(facts_.rows.kernels[facts_.row_of[row]].label);
    out.evidence.push_back(
        {"consecutive kernels on one stream over equally many elements",
         fmt::format("{} of {}, {}, {} each", counted(chain.rows.size(), "kernel"),
                     counted(head.n, "element"), counted(chain.count, "time"), short_ns(each)),
         "timeline and shapes"});
    out.evidence.push_back({"bytes moved",
                            fmt::format("{} now; fused {} to {}", format_bytes(all),
                                        format_bytes(min_bytes), format_bytes(max_bytes)),
                            "shape model"});
    out.evidence.push_back({"share of the bandwidth reached",
                            fmt::format("{:.0f}%", 100 * std::min(1.0, floor_ns / each)),
                            "shape model"});
    if (facts_.exposure.known && exposed < 0.9)
      out.evidence.push_back(
          {"share of their time that sets the pace", percent(exposed), "timeline"});
    out.assumptions.emplace_back(
        "each kernel reads the previous kernel's output, and no other kernel needs it: shapes and "
        "order suggest this, tensor addresses were not recorded");
    if (cached)
      out.assumptions.push_back(
          fmt::format("the intermediate values ({}) may stay in the L2 cache: the low estimate "
                      "counts the launches alone",
                      format_bytes(between)));
    out.saved_ns = bounded(saved_ns, saved_ns.high);
    out.confidence = cached ? "C" : "B";
    advice_.interventions.push_back(std::move(out));
  }

  const Facts& facts_;
  Advice& advice_;
  std::vector<Pointwise> rows_;
  std::vector<const Activity*> run_;
  std::map<std::vector<std::size_t>, Chain> chains_;
};

}  // namespace

void add_fusion_rules(const Facts& facts, Advice& advice) {
  if (!facts.profile->timeline.empty()) FusionRules(facts, advice).run();
}

}  // namespace purlin::analyze
