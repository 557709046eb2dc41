// SPDX-License-Identifier: Apache-2.0
// Optimizer steps of many kernels: each passes over all parameters for one of the update's
// operations. A fused optimizer reads and writes everything once.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

namespace purlin::analyze {
namespace {

constexpr Remedy kFusedOptimizer = {
    "fused_optimizer",
    "Take the fused optimizer",
    Pillar::kArithmeticIntensity,
    Level::kMemory,
    "memory",
    "hours",
    "low",
    "cuda",
    "framework",
    "PyTorch: torch.optim.AdamW(..., fused=True); Adam, SGD and Adagrad have it too|"
    "PyTorch: else torch.compile of the optimizer's step|"
    "one kernel over all parameters (multi-tensor, as NVIDIA Apex has)",
    "rounding differs in the last bits: compare the loss over some hundred steps"};

constexpr std::string_view kStepRange = "Optimizer.step#";
constexpr double kFewKernels = 4;                     // in a step: already one pass or nearly so
constexpr Interval3 kFusedMemory = {0.5, 0.75, 0.9};  // of the bandwidth
constexpr double kFusedLaunches = 2;
// Of the host's time in the step: one launch of lists against one list after the other.
constexpr Interval3 kHostOfStep = {1, 0.5, 0.2};
// With few launches most of the host's time in the step is the optimizer's own: a fused one has it
// as well. Two large layers under Adam: 7 launches, and a quarter of the time went.
constexpr double kFewLaunches = 12;
constexpr Interval3 kHostOfFew = {1, 0.5, 0.3};
constexpr Interval3 kUnsized = {0.7, 0.4, 0.25};  // of the time, where sizes are not known

class Optimizer {
 public:
  Optimizer(Walk& walk, Advice& advice) : walk_(walk), advice_(advice), chains_(walk) {}

  void run() {
    std::map<std::size_t, Launches> steps;  // by the range
    const Timeline& timeline = walk_.facts().profile->timeline;
    std::vector<const Range*> ranges;
    for (const Range& range : timeline.ranges)
      if (starts_with(name_in(timeline, range.name), kStepRange)) ranges.push_back(&range);
    if (ranges.empty()) return;
    for (const Launches& run : walk_.runs())
      for (const std::uint32_t activity : run)
        if (const std::size_t range = range_of(ranges, walk_.at(activity)); range < ranges.size())
          steps[range].push_back(activity);
    for (const auto& [range, group] : steps) keep(group);
    if (chains_.all().empty()) return;
    name_ = timeline.names[ranges.front()->name].substr(kStepRange.size());
    for (const Range* range : ranges)
      if (host_.empty() || begin_of(*range) >= host_.back().end)
        host_.push_back(interval_of(*range));
    finish();
  }

 private:
  std::size_t range_of(const std::vector<const Range*>& ranges, const Activity& activity) const {
    const auto& calls = walk_.facts().profile->timeline.calls;
    if (activity.call >= calls.size()) return ranges.size();
    const Call& call = calls[activity.call];
    const auto next = std::partition_point(ranges.begin(), ranges.end(), [&](const Range* range) {
      return range->start_ns <= call.start_ns;
    });
    if (next == ranges.begin()) return ranges.size();
    const Range& range = **(next - 1);
    return range.process == call.process && call.start_ns < range.start_ns + range.duration_ns
               ? static_cast<std::size_t>(next - ranges.begin()) - 1
               : ranges.size();
  }

  void keep(const Launches& group) {
    if (static_cast<double>(group.size()) < kFewKernels) return;
    for (const std::uint32_t activity : group)
      if (walk_.stat(activity).op.find("_fused_") != std::string::npos ||
          walk_.stat(activity).name.full.find("Fused") != std::string::npos)
        return;
    walk_.take(group);
    chains_.add(group);
  }

  struct Size {
    double elements = 0, element_size = 4;
  };
  // Parameters that one step updates: the ops that pass once over them tell.
  Size size_of(const Launches& group) const {
    std::map<std::string, double> by_op;
    std::set<std::uint32_t> counted;
    Size out;
    for (const std::uint32_t activity : group) {
      const Activity& one = walk_.at(activity);
      const Timeline& timeline = walk_.facts().profile->timeline;
      const std::uint32_t op =
          one.call < timeline.calls.size() ? timeline.calls[one.call].op : kNone;
      if (op != kNone && !counted.insert(op).second) continue;
      const KernelRow& row = walk_.facts().profile->kernels[one.row];
      Problem problem;
      problem.dimensions = dimensions_from_text(row.shape);
      by_op[row.op] += static_cast<double>(problem["n"]);
      if (const double size = bytes_per_element(row.dtype); size > 0) out.element_size = size;
    }
    double most = 0;
    for (const auto& [op, n] : by_op) most = std::max(most, n);
    out.elements = most;
    for (const auto& [op, n] : by_op)
      if (n >= 0.45 * most) out.elements = std::min(out.elements, n);
    return out;
  }

  // Long lists of parameters are recorded without their sizes: what a pass takes less then is known
  // by the update's passes alone, some twenty values of each parameter against seven.
  void unsized(const Chain& chain, Intervention& out) {
    const Facts& facts = walk_.facts();
    become(facts, chain, kUnsized * chain.each_ns(), kFusedLaunches, out);
    name_kernels(facts, chain.rows, out);
    out.evidence.push_back(
        {fmt::format("{}: kernels of one step of the optimizer", clean(name_)),
         fmt::format("{}, {}; sizes were not recorded", counted(chain.rows.size(), "kernel"),
                     short_ns(chain.each_ns())),
         "timeline"});
  }

  // Each launch of a few stays, with its part of the time: the host's part is scaled as a whole.
  bool keep_few_launches(Change& change) const {
    for (const Chain* chain : chains_.all())
      if (static_cast<double>(chain->rows.size()) > kFewLaunches) return false;
    for (Edit& edit : change.edits) {
      const auto* replace = std::get_if<edit::Replace>(&edit);
      if (replace == nullptr || replace->groups.empty()) continue;
      Launches all;
      for (const Launches& one : replace->groups) all.insert(all.end(), one.begin(), one.end());
      const double each = walk_.duration(all) / static_cast<double>(replace->groups.size());
      edit = edit::Scale{Affected::of(std::move(all)),
                         replace->duration_ns * (1 / std::max(1.0, each))};
    }
    return true;
  }

  void finish() {
    const Facts& facts = walk_.facts();
    Intervention out = from_remedy(kFusedOptimizer);
    const bool adam = name_.find("Adam") != std::string::npos;
    const double passes = adam ? 7 : 5;
    double ns = 0;
    for (const Chain* chain : chains_.all()) {
      const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain->rows.front()]];
      const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
      const Size size = size_of(chain->groups.front());
      if (peaks.bandwidth <= 0) continue;
      if (size.elements <= 0) {
        unsized(*chain, out);
        ns += chain->ns;
        continue;
      }
      const double bytes = size.elements * size.element_size * passes;
      const auto after = [&](double memory) {
        return std::min(chain->each_ns(),
                        kFusedLaunches * roof_ns(peaks, 0, bytes / kFusedLaunches, 1, memory));
      };
      become(facts, *chain,
             {after(kFusedMemory.low), after(kFusedMemory.mid), after(kFusedMemory.high)},
             kFusedLaunches, out);
      name_kernels(facts, chain->rows, out);
      ns += chain->ns;
      if (out.evidence.size() >= 4) continue;
      out.evidence.push_back(
          {fmt::format("{}: kernels of one step of the optimizer", clean(name_)),
           fmt::format("{}, {}, for {} parameters", counted(chain->rows.size(), "kernel"),
                       short_ns(chain->each_ns()), si(size.elements, "")),
           "timeline and shapes"});
      out.evidence.push_back(
          {"bytes that one pass needs",
           fmt::format("{}: {:.0f} values of each parameter", format_bytes(bytes), passes),
           "shape model"});
    }
    if (out.evidence.empty()) return;
    const bool few = keep_few_launches(out.change);
    const Interval3 host = few ? kHostOfFew : kHostOfStep;
    out.change.edits.emplace_back(edit::ScaleHost{host, host_, kNone});
    out.evidence.push_back({"time of these kernels",
                            of_total(in_one_unit(facts, ns), facts.unit.baseline_ns.mid),
                            "timeline"});
    out.assumptions.push_back(
        fmt::format("the fused kernel reaches {:.2f} to {:.2f} of the bandwidth; the host takes "
                    "{:.1f} to {:.1f} of its time in the step",
                    kFusedMemory.low, kFusedMemory.high, host.high, host.low));
    out.confidence = "B";
    advice_.interventions.push_back(std::move(out));
  }

  Walk& walk_;
  Advice& advice_;
  Chains chains_;
  std::string name_;
  std::vector<Interval> host_;  // steps of the optimizer
};

}  // namespace

const Rule kOptimizerRule = {{&kFusedOptimizer, 1},
                             [](Walk& walk, Advice& advice) { Optimizer(walk, advice).run(); }};

}  // namespace purlin::analyze
