// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/advice.h"

#include "analyze/advise/checklist.h"
#include "analyze/advise/facts.h"
#include "analyze/advise/learn/margins.h"
#include "analyze/advise/lists.h"
#include "analyze/advise/ranking/ranking.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/rules.h"
#include "analyze/advise/savings/savings.h"
#include "analyze/advise/unknown_roofs.h"
#include "analyze/advise/verdict/verdict.h"
#include "analyze/advise/what_if/what_if.h"
#include "analyze/phase/slice.h"
#include "analyze/report/identity.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/host.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kFar = 0.2;          // of the kernel time, to the target: too much to pass over
constexpr double kLittleIdle = 0.05;  // of the unit: no reason to look for its causes

// A rule with enough outcomes is no longer believed by its model but by them.
void apply_records(const TrackRecords& records, const Unit& unit,
                   std::vector<Intervention>& interventions) {
  for (Intervention& one : interventions) {
    const auto record = records.find(one.id);
    if (record == records.end()) continue;
    one.record = record->second;
    if (!one.record->factor || one.saved_share.mid <= 0) continue;
    const Interval3& factor = *one.record->factor;
    const double mid = one.saved_ns.mid;
    one.saved_ns =
        bounded({mid * factor.low, mid * factor.mid, mid * factor.high}, unit.baseline_ns.mid);
    const double share = one.saved_share.mid;
    one.saved_share = bounded({share * factor.low, share * factor.mid, share * factor.high}, 1);
  }
}

// Amdahl bounds what shorter kernels save. What removes or moves work changes more than them.
bool shortens_only(const Change& change) {
  return std::all_of(change.edits.begin(), change.edits.end(),
                     [](const Edit& edit) { return std::holds_alternative<edit::Scale>(edit); });
}

void add_margin(const Unit& unit, Intervention& one) {
  if (one.saved_share.mid <= 0) return;
  Margin margin = margin_of(one.id);
  const bool all_kernels = one.risk == "high";  // a change of precision reaches the others too
  if (one.estimate != "replay" || (shortens_only(one.change) && !all_kernels)) margin.above = 0;
  widen(margin, unit.baseline_ns.mid, one.saved_share, one.saved_ns);
}

// Whether the report names a cause of idle time that calls of the host show.
bool knows_causes(const TimelineAnalysis& timeline) {
  const auto causes = [](const DeviceTime& device) {
    return std::any_of(device.idle_ns.begin(),
                       device.idle_ns.begin() + static_cast<std::ptrdiff_t>(IdleCause::kProfiler),
                       [](std::int64_t ns) { return ns > 0; });
  };
  return std::any_of(timeline.devices.begin(), timeline.devices.end(), causes);
}

void add_notes(const Facts& facts, Advice& advice) {
  if (facts.unit.kind == "kernel_time" && facts.rows.kernel_ns > 0)
    advice.notes.emplace_back(
        "no timeline: savings are shares of the kernels' time, not end to end; record a timeline "
        "with `purlin profile --full` or import a trace");
  bool known = false;
  for (const Ceilings& ceilings : facts.rows.ceilings) known |= !ceilings.empty();
  if (!known && !facts.rows.kernels.empty())
    advice.notes.emplace_back(
        "the GPU is not known, so roofs and targets are not known: give it with --gpu NAME");
  if (known && advice.judged_share < 0.5 && facts.rows.kernel_ns > 0)
    advice.notes.push_back(
        fmt::format("the roof of {:.0f}% of the kernel time is not known: record shapes "
                    "(record_shapes=True) or counters (ncu, --counters)",
                    100 * (1 - advice.judged_share)));
  if (!facts.timeline->devices.empty() && !facts.exposure.known)
    advice.notes.emplace_back(
        !facts.profile->timeline.calls.empty() || knows_causes(*facts.timeline)
            ? "the host's calls are known in part: what faster kernels save assumes that kernels, "
              "not the host, set the pace"
            : "the host's calls were not recorded: the causes of idle time are not known, and what "
              "faster kernels save assumes that kernels set the pace");
  if (facts.unit.kind == "step" && facts.unit.count < 5 && facts.unit.host_ns > 0)
    advice.notes.push_back(
        fmt::format("{} recorded: the recorder's start slows the first steps and raises their mean",
                    counted(facts.unit.count, "step")));
  if (facts.unit.long_steps > 0)
    advice.notes.push_back(fmt::format(
        "{:.0f} of {} {} more than twice the median: in the mean, but not in the replay",
        facts.unit.long_steps, counted(facts.unit.count, "step"),
        facts.unit.long_steps == 1 ? "takes" : "take"));
  double stopped = 0, stops = 0;
  for (const DeviceTime& device : facts.timeline->devices) {
    stopped += static_cast<double>(device.one_off_ns) / facts.unit.devices;
    stops += device.one_off_gaps;
  }
  if (facts.unit.kind != "kernel_time" &&
      stopped > kLittleIdle * facts.unit.count * facts.unit.recorded_ns)
    advice.notes.push_back(
        fmt::format("the device stopped for {} in {}, such as for a checkpoint: in no step",
                    short_ns(stopped), counted(stops, "one-off gap")));
  if (facts.unit.devices > 1)
    advice.notes.push_back(
        fmt::format("figures are means over {:.0f} devices", facts.unit.devices));
}

// Why the idle time of the device gives no advice. The report shows idle time as recorded, so this
// speaks of both.
std::string idle_in_words(const Facts& facts, const Advice& advice) {
  const Unit& unit = facts.unit;
  const double recorded = unit.recorded_ns > 0 ? 1 - unit.busy_ns / unit.recorded_ns : 0;
  if (advice.idle_share < kLittleIdle && recorded < kLittleIdle)
    return "the device does not idle for long";
  if (advice.idle_share < kLittleIdle)
    return fmt::format("the device idles {:.0f}% as recorded and little without the recorder",
                       100 * recorded);
  const std::string share =
      fmt::format("the device idles {:.0f}% of the time", 100 * advice.idle_share);
  if (idles_between_queued(facts)) return share + ", " + kBetweenQueued;
  if (!knows_calls(facts.profile->timeline))
    return share + ", but the host's calls were not recorded, so the cause is not known";
  return share + ", but no cause that can be removed takes enough of it";
}

// The heaviest kernel that is far from its roof, though no rule knows why; "" without one.
std::string far_kernel(const Facts& facts) {
  for (const KernelStat& kernel : facts.rows.kernels) {
    const Target target = target_of(kernel.roof, facts.targets);
    if (kernel.roof.utilization <= 0 || target.reached() || is_short_launch(kernel)) continue;
    if (kernel.share * target.saved_share < kFar) continue;
    return fmt::format(
        "{} is at {:.0f}% of its roof, but the profile does not show why: sample its "
        "stalls (--stalls) or read counters (--counters, ncu --set full)",
        short_label(kernel), 100 * kernel.roof.utilization);
  }
  return "";
}

std::string unknown_in_words(const Facts& facts, const Advice& advice) {
  const UnknownRoof& first = advice.unknown_roofs.front();
  return fmt::format("{} takes {:.0f}% of the {}, and how far it is from its roof is not known",
                     clean(elide_middle(first.kernel, 60)), 100 * first.share,
                     facts.unit.kind == "kernel_time" ? "kernel time" : facts.unit.kind);
}

std::string reason_for_nothing(const Facts& facts, const Advice& advice) {
  if (!advice.unknown_roofs.empty()) return unknown_in_words(facts, advice);
  if (const double copies = advice.levels[static_cast<std::size_t>(LossLevel::kDataMovement)];
      copies >= kFar)
    return fmt::format(
        "copies that no kernel hides take {:.0f}% of the time, but the profile does "
        "not show which of them are needed",
        100 * copies);
  if (facts.rows.kernels.empty()) return "no profile of kernels: nothing was recorded";
  if (facts.rows.kernel_ns <= 0)
    return "durations were not recorded, so savings cannot be estimated";
  if (const std::string far = far_kernel(facts); !far.empty())
    return (facts.unit.kind == "kernel_time" ? "" : idle_in_words(facts, advice) + "; ") + far;
  if (facts.unit.kind == "kernel_time")
    return advice.judged_share < 0.2
               ? "neither the kernels' distance to their roofs nor the device's idle time is known"
               : "no kernel is far enough from its target to be worth the work; the device's idle "
                 "time was not recorded";
  return idle_in_words(facts, advice) +
         (advice.judged_share < 0.2
              ? ", and the kernels' distance to their roofs is not known"
              : ", and no kernel is far enough from its target to be worth the work");
}

}  // namespace

std::string section_of(std::string_view remedy) {
  std::string anchor(remedy);
  std::replace(anchor.begin(), anchor.end(), '_', '-');
  return "docs/guide/playbook.md#" + anchor;
}

Advice advise(const Profile& whole, const TimelineAnalysis& timeline,
              const std::vector<Ceilings>& measured, const AdviceOptions& options) {
  const std::optional<Profile> cut = cut_to(whole, timeline);
  const Profile& profile = cut ? *cut : whole;
  const Facts facts = gather(profile, timeline, measured, options.targets);
  Advice advice;
  advice.unit = facts.unit;
  advice.environment = profile.environment;
  advice.coverage = profile.coverage;
  advice.partial = profile.partial;
  advice.profile_id = profile_id(profile);
  if (facts.rows.kernel_ns > 0) {
    add_host_rules(facts, advice);
    add_playbook(facts, advice);
    add_kernel_rules(facts, advice);
  }
  add_stall_rules(facts, advice);
  keep_what_fits(facts.platform, advice.interventions);
  keep_what_fits(facts.platform, advice.trades);
  for (std::vector<Intervention>* list : {&advice.interventions, &advice.trades})
    for (Intervention& one : *list) {
      one.doc = section_of(one.id);
      one.route = route_of(facts.platform, one);
    }
  join_alike(advice.interventions);
  join_alike(advice.trades);
  add_savings(facts, advice.interventions);
  add_savings(facts, advice.trades);
  for (std::vector<Intervention>* list : {&advice.interventions, &advice.trades})
    for (Intervention& one : *list) add_margin(facts.unit, one);
  if (options.records != nullptr) apply_records(*options.records, facts.unit, advice.interventions);
  const std::size_t all = advice.interventions.size();
  std::erase_if(advice.interventions, [&](const Intervention& one) {
    return one.saved_share.mid < options.smallest || one.evidence.empty();
  });
  advice.small_ones = all - advice.interventions.size();
  advice.below_spread = drop_below_spread(facts, advice.interventions);
  rank(advice.interventions);
  rank_by_what_is_left(facts, advice.interventions);
  std::erase_if(advice.trades, [&](const Intervention& one) {  // what costs time gives memory
    return one.saved_share.mid >= 0 && one.saved_share.mid < options.smallest;
  });
  place_trades(advice);
  add_unknown_roofs(facts, advice);
  add_replay(facts, advice);
  judge_level(facts, advice);
  add_no_gain(facts, advice);
  add_hardware(facts, options, advice);
  add_lists(facts, options, advice);
  add_plan(facts, advice);
  add_alerts(facts, advice);
  add_notes(facts, advice);
  add_checklist(facts, advice);
  if (advice.interventions.empty()) advice.nothing = reason_for_nothing(facts, advice);
  return advice;
}

Result<Outcome> outcome_of(const Advice& before, const Advice& after, std::string_view id) {
  const auto one = std::find_if(before.interventions.begin(), before.interventions.end(),
                                [id](const Intervention& known) { return known.id == id; });
  if (one == before.interventions.end() || one->saved_share.mid <= 0) {
    std::vector<std::string> ids;
    for (const Intervention& known : before.interventions) ids.push_back(known.id);
    return error(Code::kNotFound, "{}: not advised for the profile before the change; advised: {}",
                 id, ids.empty() ? "nothing" : join(ids, ", "));
  }
  const double was = before.unit.baseline_ns.mid, is = after.unit.baseline_ns.mid;
  if (before.unit.kind != after.unit.kind || was <= 0 || is <= 0)
    return error(Code::kInvalid, "times of a {} and of a {} cannot be compared: record both alike",
                 before.unit.kind, after.unit.kind);
  Outcome out;
  out.rule = id;
  out.device = before.environment.devices.empty() ? "" : before.environment.devices.front().name;
  out.confidence = one->confidence;
  out.predicted = one->saved_share;
  out.measured = 1 - is / was;
  out.before = before.profile_id;
  out.after = after.profile_id;
  return out;
}

void put_advice(const Advice& advice, Report& report, std::size_t most) {
  report.verdict = advice.verdict;
  report.alerts = advice.alerts;
  report.advice.clear();
  for (const Intervention& one : advice.interventions) {
    if (report.advice.size() == most) break;
    report.advice.push_back({one.id, one.title, one.kernels, one.saved_share.low,
                             one.saved_share.mid, one.saved_share.high});
  }
}

}  // namespace purlin::analyze
