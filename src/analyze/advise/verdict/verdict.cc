// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/verdict/verdict.h"

#include "analyze/advise/ranking/plan.h"
#include "analyze/advise/ranking/ranking.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

// Of its roof: from here tuning pays little; below this a kernel is worth two- or threefold.
constexpr double kDiminishingShare = 0.60, kTune = 0.30;
constexpr double kRounding = 0.0005;  // durations are whole ns: what is shown as 60.0% is 60%
constexpr double kMostlyIdle = 0.40, kSomeIdle = 0.15, kJudged = 0.20;
constexpr double kAtTarget = 0.95, kNearlyAll = 0.80;
constexpr double kRankWaits = 0.02;  // of the unit: worth a word
constexpr double kDominant = 0.5;    // of the kernels' time
constexpr double kWideRange = 0.1;   // of the idle share: worth a word

const Intervention* best(const Advice& advice, LossLevel level) {
  for (const Intervention& one : advice.interventions)  // in order of saving
    if (loss_level(one) == level) return &one;
  return nullptr;
}

std::string candidate(const char* what, const Intervention* one) {
  if (one == nullptr) return fmt::format("{}: nothing found", what);
  return fmt::format("{}: {} saves {:.0f}% ({:.0f} to {:.0f}), {:.1f}% for a day of work", what,
                     one->id, 100 * one->saved_share.mid, 100 * one->saved_share.low,
                     100 * one->saved_share.high,
                     100 * one->saved_share.mid / effort_days(one->effort));
}

// The level outside of the kernels that takes most: idle time, copies or collectives that nothing
// hides.
LossLevel largest_outside(const LevelShares& levels) {
  LossLevel best = LossLevel::kScheduling;
  for (const LossLevel level : {LossLevel::kDataMovement, LossLevel::kCommunication})
    if (levels[static_cast<std::size_t>(level)] > levels[static_cast<std::size_t>(best)])
      best = level;
  return best;
}

// The kind of copy that takes most: "h2d pageable at 25.3 GB/s", of the device's own with their
// share of the bandwidth, each byte read and written.
std::string copies_in_words(const Facts& facts) {
  const CopyRow* most = nullptr;
  for (const CopyRow& copy : facts.profile->copies)
    if (most == nullptr || copy.duration.total_ns() > most->duration.total_ns()) most = &copy;
  if (most == nullptr || most->duration.total_ns() <= 0) return "";
  const double rate = most->bytes / most->duration.total_ns() * 1e9;
  std::string text = ", most of it " + clean(most->kind);
  if (rate > 0) text += " at " + si(rate, "B/s");
  const bool inside = most->kind == "d2d" || most->kind == "memset";
  const double traffic = rate * (most->kind == "d2d" ? 2 : 1);
  for (const Ceilings& ceilings : facts.rows.ceilings)
    if (const Ceiling* dram = ceilings.memory_for("dram"); inside && dram != nullptr && rate > 0)
      return text + fmt::format(", {:.0f}% of the bandwidth", 100 * traffic / dram->peak);
  return text;
}

// The idle share where the recorder added as much as it may have, as it likely has, and nothing.
Interval3 idle_range(const Unit& unit) {
  const auto at = [&](double baseline) {
    return baseline > 0 ? std::clamp((baseline - unit.busy_ns) / baseline, 0.0, 1.0) : 0.0;
  };
  const double whole = unit.recorded_ns - unit.profiler_ns;
  return {at(unit.baseline_ns.low), at(unit.baseline_ns.mid),
          at(std::max(unit.baseline_ns.high, whole))};
}

// "; 25% to 45%: how much of it the recorder added is an estimate".
std::string range_in_words(const Advice& advice) {
  const Interval3& range = advice.idle_range;
  if (range.high - range.low < kWideRange) return "";
  return fmt::format(" ({:.0f}% to {:.0f}%: how much the recorder added is an estimate)",
                     100 * range.low, 100 * range.high);
}

// Where the schedule is not the verdict, though it may be.
std::string idle_in_doubt(const Advice& advice) {
  return advice.idle_range.high >= kSomeIdle && !range_in_words(advice).empty()
             ? fmt::format("; the device idles {:.0f}%{}", 100 * advice.idle_share,
                           range_in_words(advice))
             : "";
}

TensorShares tensor_shares(const Facts& facts) {
  TensorShares out;
  for (const KernelStat& kernel : facts.rows.kernels) {
    const std::string_view what = kernel.name.op_class;
    if (what != "gemm" && what != "conv" && what != "attention") continue;
    out.eligible += kernel.share;
    const bool idle = kernel.roof.tensor_cores_idle || kernel.name.tensor == TensorCores::kNo;
    if (idle) {
      out.idle += kernel.share;
    } else if (kernel.name.tensor == TensorCores::kYes) {
      out.used += kernel.share;
    }
  }
  return out;
}

// In a collective a rank waits for the others. The profile of one rank does not show how long. If
// its own launches are the largest loss that can be cured, those of the others may be as well.
std::string waits_in_words(const Facts& facts, const Advice& advice) {
  if (facts.unit.devices > 1) return "";
  const bool late = !advice.interventions.empty() &&
                    loss_level(advice.interventions.front()) == LossLevel::kScheduling;
  return std::string(", waits for ranks that are not recorded included") +
         (late ? fmt::format(". If those launch as late as this one, launch faster first ({})",
                             advice.interventions.front().id)
               : "");
}

// Which device the others wait for, and how long its kernels take next to theirs.
std::string last_in_words(const Facts& facts) {
  const std::vector<DeviceTime>& devices = facts.timeline->devices;
  for (const RankStats& rank : facts.timeline->ranks) {
    if (rank.collectives <= 0 || rank.last <= 0.5 * rank.collectives) continue;
    double own = 0, others = 0;
    for (const DeviceTime& one : devices)
      (one.device == rank.device ? own : others) += static_cast<double>(one.compute_ns);
    const double each = others / std::max(1.0, static_cast<double>(devices.size()) - 1);
    const std::string kernels =
        each > 0 && own > each
            ? fmt::format(
                  ", its kernels take {:.1f} times as long as the others': divide the work "
                  "evenly",
                  own / each)
            : std::string(": find what delays it");
    return fmt::format("; device {} is last in {} of {}{}", rank.device, format_count(rank.last),
                       counted(rank.collectives, "collective"), kernels);
  }
  return "";
}

// What a level above the kernels' is called, and what to do first.
std::string outside_in_words(const Facts& facts, const Advice& advice, LossLevel level,
                             double share) {
  switch (level) {
    case LossLevel::kDataMovement:
      return fmt::format(
          "move less data first: copies that no kernel hides take {:.0f}% of the "
          "time{}",
          100 * share, copies_in_words(facts));
    case LossLevel::kCommunication:
      return fmt::format(
          "communicate less first, or hide it: collectives that no computation hides take {:.0f}% "
          "of the time{}",
          100 * share, waits_in_words(facts, advice));
    default:
      if (share > advice.idle_share + kRankWaits)
        return fmt::format(
            "fix the schedule first: the devices idle {:.0f}% of the time and wait "
            "{:.0f}% of it in collectives for the last rank{}",
            100 * advice.idle_share, 100 * (share - advice.idle_share), last_in_words(facts));
      return fmt::format(
          "fix the schedule first: the device idles {:.0f}% of the time{}{}{}",
          100 * advice.idle_share, range_in_words(advice),
          idles_between_queued(facts) ? std::string(", ") + kBetweenQueued : std::string(),
          advice.idle_share >= kMostlyIdle ? ", faster kernels do not change that" : "");
  }
}

// A kernel with most of the time is judged by itself, not in the mean.
const KernelStat* dominant(const Facts& facts) {
  double all = 0;
  for (const KernelStat& kernel : facts.rows.kernels)
    if (kernel.name.op_class != "communication") all += kernel.duration.total_ns();
  for (const KernelStat& kernel : facts.rows.kernels)
    if (kernel.name.op_class != "communication" && kernel.roof.utilization > 0 &&
        kernel.duration.total_ns() > kDominant * all)
      return &kernel;
  return nullptr;
}

// Where no kernel dominates: the first change of that level, if most of the time is at it.
const Intervention* mostly_restructured(const Advice& advice) {
  const auto share = [&](LossLevel level) {
    return advice.levels[static_cast<std::size_t>(level)];
  };
  const Intervention* one = best(advice, LossLevel::kRestructure);
  const bool is_most = share(LossLevel::kRestructure) > share(LossLevel::kTune);
  return one != nullptr && is_most && one->saved_share.mid >= kWorthIt ? one : nullptr;
}

// What is known of the kernels' roofs, where that is too little for a verdict.
std::string unjudged_in_words(const Advice& advice, const std::string& kernels) {
  if (advice.unknown_roofs.empty() || advice.unknown_roofs.front().share < kDominant)
    return kernels;
  const UnknownRoof& first = advice.unknown_roofs.front();
  return fmt::format("the roof of {} is not known, and it takes {:.0f}% of the time",
                     clean(elide_middle(first.kernel, 60)), 100 * first.share);
}

}  // namespace

void judge_level(const Facts& facts, Advice& advice) {
  double judged = 0, used = 0, at_target = 0, all = 0, headroom = 0, shorts = 0;
  for (const KernelStat& kernel : facts.rows.kernels) {
    const double ns = kernel.duration.total_ns();
    all += ns;
    if (is_short_launch(kernel)) shorts += ns;
    if (kernel.roof.utilization <= 0) continue;
    judged += ns;
    used += ns * kernel.roof.utilization;
    const Target target = target_of(kernel.roof, facts.targets);
    headroom += ns * std::min(target.saved_share, most_by_tuning(kernel));
    if (kernel.roof.utilization >= kAtTarget * target.fraction) at_target += ns;
  }
  advice.kernel_utilization = judged > 0 ? used / judged : 0;
  advice.judged_share = all > 0 ? judged / all : 0;
  advice.short_share = all > 0 ? shorts / all : 0;
  advice.tensor = tensor_shares(facts);
  const Unit& unit = facts.unit;
  if (unit.kind != "kernel_time" && unit.baseline_ns.mid > 0) {
    advice.idle_range = idle_range(unit);
    advice.idle_share = advice.idle_range.mid;
  }
  advice.levels = measure_levels(facts, advice);
  const LossLevel outside = largest_outside(advice.levels);
  const double lost = advice.levels[static_cast<std::size_t>(outside)];
  double elsewhere = 0;
  for (const LossLevel level :
       {LossLevel::kScheduling, LossLevel::kDataMovement, LossLevel::kCommunication})
    elsewhere += advice.levels[static_cast<std::size_t>(level)];
  const double kernels_to_gain = all > 0 ? std::max(0.0, 1 - elsewhere) * headroom / all : 0;
  const KernelStat* first = dominant(facts);
  const double u = first != nullptr ? first->roof.utilization : advice.kernel_utilization;
  const Intervention* instead =
      first != nullptr ? instead_of_tuning(facts, advice, *first) : mostly_restructured(advice);
  const std::string kernels =
      first != nullptr && facts.rows.kernels.size() > 1
          ? fmt::format("{} takes {:.0f}% of the kernel time and is at {:.0f}% of its roof",
                        short_label(*first), 100 * first->share, 100 * u)
      : judged > 0 ? fmt::format(
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
  } else if (lost >= kMostlyIdle || (lost >= kSomeIdle && lost > kernels_to_gain)) {
    advice.verdict = to_text(outside);
    advice.verdict_text = outside_in_words(facts, advice, outside, lost) + "; " + kernels;
  } else if (advice.short_share >= kDominant) {
    advice.verdict = "restructure";
    advice.verdict_text = fmt::format(
        "launches of {} or less take {:.0f}% of the kernel time, and mostly start and end in it: "
        "fewer launches with more work each{}",
        short_ns(kShortLaunch), 100 * advice.short_share, idle_in_doubt(advice));
  } else if (advice.judged_share < kJudged) {
    advice.verdict = "unknown";
    advice.verdict_text = unjudged_in_words(advice, kernels) + ": level not decided";
  } else if (u >= kDiminishingShare - kRounding) {
    const bool hardware =
        at_target >= kNearlyAll * judged &&
        (advice.interventions.empty() || advice.interventions[0].saved_share.mid < kWorthIt);
    advice.verdict = hardware ? "scale_hardware" : "restructure";
    advice.verdict_text =
        fmt::format("{}, so tuning gains little (at most {:.2f} x): {}", kernels, 1 / u,
                    hardware ? "do less work, or take faster or more devices"
                             : "do less work or move less data") +
        idle_in_doubt(advice);
  } else if (instead != nullptr && u < kTune - kRounding) {
    advice.verdict = "restructure";
    advice.verdict_text =
        fmt::format("{}: {} saves {:.0f}% ({:.0f} to {:.0f}); do that before you tune", kernels,
                    instead->id, 100 * instead->saved_share.mid, 100 * instead->saved_share.low,
                    100 * instead->saved_share.high) +
        idle_in_doubt(advice);
  } else if (u < kTune - kRounding) {
    advice.verdict = "tune";
    advice.verdict_text =
        fmt::format("{}: two- or threefold is plausible, {:.1f} x the bound", kernels, 1 / u) +
        idle_in_doubt(advice);
  } else {
    advice.verdict = "grey";
    advice.verdict_text =
        fmt::format("{}, between tuning and restructuring. {}; {}", kernels,
                    candidate("Tuning", best(advice, LossLevel::kTune)),
                    candidate("restructuring", best(advice, LossLevel::kRestructure)));
  }
}

}  // namespace purlin::analyze
