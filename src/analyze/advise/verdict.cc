// SPDX-License-Identifier: Apache-2.0
// At which level the time is: the schedule, the kernels' tuning, the algorithm, the hardware.
#include "analyze/advise/rules.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

// Of its roof: from here tuning pays little; below this a kernel is worth two- or threefold.
constexpr double kDiminishingShare = 0.60, kTune = 0.30;
constexpr double kMostlyIdle = 0.40, kSomeIdle = 0.15, kJudged = 0.20;
constexpr double kAtTarget = 0.95, kNearlyAll = 0.80, kWorthIt = 0.05;

const Intervention* best(const Advice& advice, bool tuning) {
  for (const Intervention& one : advice.interventions)  // in order of saving
    if ((one.level == Level::kTuning || one.level == Level::kCompute ||
         one.pillar == Pillar::kOccupancy) == tuning &&
        one.pillar != Pillar::kOverhead)
      return &one;
  return nullptr;
}

std::string candidate(const char* what, const Intervention* one) {
  if (one == nullptr) return fmt::format("{}: nothing found", what);
  return fmt::format("{}: {} saves {:.0f}% ({:.0f} to {:.0f})", what, one->id,
                     100 * one->saved_share.mid, 100 * one->saved_share.low,
                     100 * one->saved_share.high);
}

}  // namespace

void judge_level(const Facts& facts, Advice& advice) {
  double judged = 0, used = 0, at_target = 0, all = 0, headroom = 0;
  for (const KernelStat& kernel : facts.rows.kernels) {
    const double ns = kernel.duration.total_ns();
    all += ns;
    if (kernel.roof.utilization <= 0) continue;
    judged += ns;
    used += ns * kernel.roof.utilization;
    const Target target = target_of(kernel.roof, facts.targets);
    headroom += ns * target.saved_share;
    if (kernel.roof.utilization >= kAtTarget * target.fraction) at_target += ns;
  }
  advice.kernel_utilization = judged > 0 ? used / judged : 0;
  advice.judged_share = all > 0 ? judged / all : 0;
  const Unit& unit = facts.unit;
  if (unit.kind != "kernel_time" && unit.baseline_ns.mid > 0)
    advice.idle_share =
        std::clamp((unit.baseline_ns.mid - unit.busy_ns) / unit.baseline_ns.mid, 0.0, 1.0);
  const double busy_share = 1 - advice.idle_share;
  const double kernels_to_gain = all > 0 ? busy_share * headroom / all : 0;
  const double u = advice.kernel_utilization;
  const std::string kernels =
      judged > 0 ? fmt::format(
                       "kernels with a known roof ({:.0f}% of the kernel time) are at {:.0f}% "
                       "of it",
                       100 * advice.judged_share, 100 * u)
                 : std::string("the kernels' distance to their roofs is not known");

  if (all <= 0) {
    advice.verdict = "unknown";
    advice.verdict_text =
        facts.rows.kernels.empty()
            ? "no kernels were recorded"
            : "no durations were recorded: the distribution of the time is not known";
  } else if (advice.idle_share >= kMostlyIdle ||
             (advice.idle_share >= kSomeIdle && advice.idle_share > kernels_to_gain)) {
    advice.verdict = "scheduling";
    advice.verdict_text = fmt::format(
        "fix the schedule first: the device idles {:.0f}% of the time{}; {}",
        100 * advice.idle_share,
        advice.idle_share >= kMostlyIdle ? ", faster kernels do not change that" : "", kernels);
  } else if (advice.judged_share < kJudged) {
    advice.verdict = "unknown";
    advice.verdict_text = kernels + ": level not decided";
  } else if (u >= kDiminishingShare) {
    const bool hardware =
        at_target >= kNearlyAll * judged &&
        (advice.interventions.empty() || advice.interventions[0].saved_share.mid < kWorthIt);
    advice.verdict = hardware ? "scale_hardware" : "restructure";
    advice.verdict_text =
        fmt::format("{}, so tuning them gains little (at most {:.2f} x): {}", kernels, 1 / u,
                    hardware ? "do less work, or take faster or more devices"
                             : "do less work or move less data");
  } else if (u < kTune) {
    advice.verdict = "tune";
    advice.verdict_text =
        fmt::format("{}: two- or threefold is plausible, {:.1f} x the bound", kernels, 1 / u);
  } else {
    advice.verdict = "grey";
    advice.verdict_text = fmt::format("{}, between tuning and restructuring. {}; {}", kernels,
                                      candidate("Tuning", best(advice, true)),
                                      candidate("restructuring", best(advice, false)));
  }
}

}  // namespace purlin::analyze
