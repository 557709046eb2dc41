// SPDX-License-Identifier: Apache-2.0
// One small kernel launched again and again: a persistent kernel takes its work from a queue and
// fills and drains the device once.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr Remedy kPersistent = {
    "persistent_kernel",
    "Launch the kernel once and let it fetch its work",
    Pillar::kOccupancy,
    Level::kParallelism,
    "latency",
    "weeks",
    "medium",
    "cuda",
    "kernel",
    "as many blocks as fit, each in a loop over work items from an atomic counter|"
    "CUDA: persistent tile schedulers of CUTLASS; grid-wide steps by cooperative groups "
    "(grid.sync())",
    "blocks that wait for one another need a cooperative launch"};

constexpr std::size_t kManyLaunches = 100;
constexpr double kSmallLaunch = 10'000;  // ns
constexpr double kFillAndDrain = 1'000;  // ns that a launch spends on it
constexpr double kMaxLaunchGap = 5'000;  // ns: not the device's own turn-around

void add_persistent(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  Chains chains(walk);
  for (const Launches& run : walk.runs()) {
    std::size_t begin = 0;
    while (begin < run.size()) {
      std::size_t end = begin + 1;
      while (end < run.size() && walk.at(run[end]).row == walk.at(run[begin]).row) ++end;
      if (end - begin >= kManyLaunches && walk.stat(run[begin]).duration.mean_ns() < kSmallLaunch &&
          is_of_program(walk.stat(run[begin])) && !walk.taken(run[begin]))
        chains.add({run.data() + begin, end - begin});
      begin = end;
    }
  }
  for (const Chain* chain : chains.all()) {
    double gaps = 0;
    for (const Launches& group : chain->groups)
      for (std::size_t i = 1; i < group.size(); ++i) {
        const auto gap =
            static_cast<double>(begin_of(walk.at(group[i])) - end_of(walk.at(group[i - 1])));
        if (gap > 0 && gap < kMaxLaunchGap) gaps += gap;
      }
    const auto launches = static_cast<double>(chain->rows.size()) * chain->count();
    const double drained = launches * std::min(kFillAndDrain, 0.5 * chain->ns / launches);
    Intervention out = from_remedy(kPersistent);
    out.saved_ns =
        facts.capped({0.3 * in_one_unit(facts, gaps), in_one_unit(facts, gaps + 0.3 * drained),
                      in_one_unit(facts, gaps + drained)});
    const double each = chain->each_ns() + gaps / chain->count();
    const auto less = [&](double saved) { return each - saved / chain->count(); };
    out.change.edits.emplace_back(edit::Replace{
        chain->groups, {less(0.3 * gaps), less(gaps + 0.3 * drained), less(gaps + drained)}});
    name_kernels(facts, {chain->rows.front()}, out);
    out.evidence.push_back(
        {"launches of one kernel in a row",
         fmt::format("{}, {} each", format_count(static_cast<double>(chain->rows.size())),
                     short_ns(chain->ns / launches)),
         "timeline"});
    out.evidence.push_back({"device idle between them for less than 5 us each",
                            of_total(in_one_unit(facts, gaps), facts.unit.baseline_ns.mid),
                            "timeline"});
    out.assumptions.emplace_back(
        "the items do not depend on one another, or a grid-wide barrier "
        "costs less than a launch");
    out.confidence = "C";
    advice.interventions.push_back(std::move(out));
  }
}

}  // namespace

const Rule kPersistentRule = {{&kPersistent, 1}, add_persistent};

}  // namespace purlin::analyze
