// SPDX-License-Identifier: Apache-2.0
// An optimizer that the program writes itself, tensor by tensor: one short sequence of pointwise
// kernels comes round with the size of each parameter. The same ops over lists of tensors take a
// launch for dozens of them.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/sequences.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kByLists = {
    "Update all parameters with one launch for each op", "hours",
    "PyTorch: torch._foreach_mul, _foreach_add_, _foreach_lerp_ over lists of tensors|"
    "PyTorch: torch.compile over the update, or an optimizer of a library with fused=True",
    "the tensors of a list must have one type and device"};

constexpr std::size_t kLeastOps = 3, kMostOps = 32;  // of one parameter's update
constexpr std::size_t kLeastTensors = 8, kLeastSizes = 3;
constexpr double kTensorsOfLaunch = 48;
// The host prepares each list; of the launches of one op, as many as those of a call.
constexpr Interval3 kListLaunches = {8, 4, 1};
constexpr Interval3 kListMemory = {0.3, 0.6, 0.9};

class ByHand {
 public:
  ByHand(Walk& walk, Advice& advice) : walk_(walk), advice_(advice), chains_(walk) {}

  void run() {
    if (!walk_.trains()) return;
    for (const Launches& run : walk_.runs())
      for (const Repetition& found : find_repetitions(tokens(run), {})) look_at(run, found);
    Intervention out = from_remedy(kOptimizerRule.remedies[0], kByLists);
    for (const Chain* chain : chains_.all()) estimate(*chain, out);
    if (out.evidence.empty()) return;
    out.assumptions.emplace_back(
        "the updates do not depend on one another, as their sizes suggest");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
  }

 private:
  // One number for each op and kernel, of any size.
  std::vector<std::uint32_t> tokens(const Launches& run) {
    std::vector<std::uint32_t> out;
    out.reserve(run.size());
    for (const std::uint32_t one : run) {
      const KernelStat& kernel = walk_.stat(one);
      const auto next = static_cast<std::uint32_t>(numbers_.size());
      out.push_back(numbers_.try_emplace(kernel.op + kernel.name.brief, next).first->second);
    }
    return out;
  }
  void look_at(const Launches& run, const Repetition& found) {
    if (found.period < kLeastOps || found.period > kMostOps || found.rounds < kLeastTensors) return;
    std::set<double> sizes;
    for (std::size_t i = found.begin; i < found.end(); ++i) {
      const Touch& touch = walk_.touch(run[i]);
      if (touch.kind != TouchKind::kPointwise || walk_.taken(run[i])) return;
      sizes.insert(touch.n);
    }
    // A round is of one tensor, though the sequence may begin within one.
    const std::size_t changes = count_changes(run, found);
    if (sizes.size() < kLeastSizes || changes > found.rounds + 1) return;
    const std::span<const std::uint32_t> group{run.data() + found.begin, found.end() - found.begin};
    walk_.take(group);
    chains_.add(group);
    periods_[group.size()] = found.period;
  }
  std::size_t count_changes(const Launches& run, const Repetition& found) const {
    std::size_t out = 0;
    for (std::size_t i = found.begin + 1; i < found.end(); ++i)
      out += walk_.touch(run[i]).n != walk_.touch(run[i - 1]).n ? 1 : 0;
    return out;
  }
  void estimate(const Chain& chain, Intervention& out) {
    const Facts& facts = walk_.facts();
    const KernelStat& kernel = facts.rows.kernels[facts.row_of[chain.rows.front()]];
    const Peaks peaks = peaks_of(facts, kernel, kernel.dtype);
    if (peaks.bandwidth <= 0) return;
    const auto ops = static_cast<double>(periods_.at(chain.rows.size()));
    const double tensors = static_cast<double>(chain.rows.size()) / ops;
    const double launches = ops * std::ceil(tensors / kTensorsOfLaunch);
    double bytes = 0;
    for (const std::uint32_t row : chain.rows) bytes += walk_.row_touch(row).bytes();
    const auto after = [&](double calls, double memory) {
      return launches * std::max(calls * launch_cost(facts).mid,
                                 roof_ns(peaks, 0, bytes / launches, 1, memory));
    };
    become(facts, chain,
           {after(kListLaunches.low, kListMemory.low), after(kListLaunches.mid, kListMemory.mid),
            after(kListLaunches.high, kListMemory.high)},
           launches, out);
    name_kernels(facts, chain.rows, out);
    if (out.evidence.size() >= 4) return;
    out.evidence.push_back(
        {"the same pointwise kernels for one tensor after another, of different sizes",
         fmt::format("{} of {}, {} together, {}", counted(tensors, "tensor"),
                     counted(ops, "launch"), short_ns(chain.each_ns()),
                     counted(chain.count(), "time")),
         "timeline and shapes"});
  }

  Walk& walk_;
  Advice& advice_;
  Chains chains_;
  std::map<std::string, std::uint32_t> numbers_;
  std::map<std::size_t, std::size_t> periods_;  // by the launches of a sequence
};

}  // namespace

const Rule kByHandRule = {{}, [](Walk& walk, Advice& advice) { ByHand(walk, advice).run(); }};

}  // namespace purlin::analyze
