// SPDX-License-Identifier: Apache-2.0
// What warps wait for. What is gained is bounded by the slots that are free: a kernel whose busiest
// unit is at 80 % gains no more than the other 20 %.
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/advise/rules/rules.h"
#include "analyze/stalls/stalls.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kIssuing = 0.80;         // of the issue slots: stalls are hidden
constexpr double kFewWarps = 0.50;        // of the slots
constexpr double kSmallStallRow = 0.002;  // of the unit

double issue_active(const std::vector<Counter>& counters) {
  for (const Counter& counter : counters) {
    if (counter.name == "smsp__issue_active.avg.pct_of_peak_sustained_active")
      return counter.value / 100;
    if (counter.name == "smsp__issue_active.avg.per_cycle_active") return counter.value;
  }
  return -1;
}

}  // namespace

void add_stall_rules(const Facts& facts, Advice& advice) {
  const auto& kernels = facts.rows.kernels;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const KernelStat& kernel = kernels[i];
    const StallTable stalls = read_stalls(kernel.counters, kernel.sampled);
    const auto findings = stalls.findings();
    if (findings.empty()) continue;
    const double issue = issue_active(kernel.counters);
    if (issue >= kIssuing) continue;
    const CounterFigures figures = read_counters(kernel.counters, kernel.duration.mean_ns());
    const double occupancy = kernel.roof.occupancy_achieved;
    const std::string crowd = why_occupancy_does_not_help(stalls, figures, occupancy);
    for (const StallReason* reason : findings) {
      StallNote note;
      note.kernel = kernel.label;
      note.reason = reason->name;
      note.meaning = reason->meaning;
      note.stalled = reason->stalled;
      note.share = reason->share;
      note.occupancy = crowd;
      if (const StallLine* line = kernel.sampled.most_of(reason->name)) note.where = line->where();
      advice.stalls.push_back(std::move(note));
    }
    const StallReason& most = *findings.front();
    const double t = kernel.duration.total_ns();
    if (t <= 0 || facts.in_unit(t) < kSmallStallRow * facts.unit.baseline_ns.mid) continue;
    if (most.remedy.empty()) continue;
    const double busiest =
        std::max(figures.compute_busy.value_or(0), figures.memory_busy.value_or(0));
    if (!figures.compute_busy || !figures.memory_busy) continue;
    const bool memory = most.name == "long_scoreboard";
    // Memory that is busy is what the roofline's rules are about.
    if (memory && *figures.memory_busy >= 0.6) continue;
    const bool few = crowd.empty() && occupancy > 0 && occupancy < kFewWarps &&
                     kernel.roof.occupancy_theoretical < kFewWarps;
    Intervention out = from_remedy(few ? "raise_occupancy" : most.remedy);
    out.kernels = {kernel.label};
    out.evidence.push_back({"warps wait for " + most.meaning,
                            fmt::format("{:.0f}% of the stalls, {:.0f}% of all samples ({})",
                                        100 * most.stalled, 100 * most.share, most.name),
                            stalls.sampled ? "program counter samples" : "counters"});
    if (const StallLine* line = kernel.sampled.most_of(most.name))
      out.evidence.push_back({"most of them at", clean(line->where()), "program counter samples"});
    out.evidence.push_back({"SMs and memory busy",
                            percent(*figures.compute_busy) + ", " + percent(*figures.memory_busy),
                            "counters"});
    if (issue >= 0) out.evidence.push_back({"issue slots in use", percent(issue), "counters"});
    if (occupancy > 0)
      out.evidence.push_back({"occupancy achieved", percent(occupancy), "counters"});
    if (!few && !crowd.empty())
      out.evidence.push_back({"more occupancy does not help", crowd, "counters"});
    out.assumptions.emplace_back(
        "0.3, 0.85 and 1.4 of the model: the accuracy of GPA's advisor over 26 published pairs");
    const double model = t * std::min(most.stalled, 1 - busiest);
    const Interval3 saved = bounded(kStallModel * model, t * (1 - busiest));
    out.change.edits.emplace_back(
        scale_of(facts, i, {1 - saved.low / t, 1 - saved.mid / t, 1 - saved.high / t}));
    out.saved_ns = facts.capped(facts.end_to_end(i, saved));
    out.confidence = "B";
    advice.interventions.push_back(std::move(out));
  }
}

}  // namespace purlin::analyze
