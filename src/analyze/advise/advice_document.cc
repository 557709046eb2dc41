// SPDX-License-Identifier: Apache-2.0
// The advice for programs: docs/formats/advise.md.
#include "analyze/advise/advice.h"
#include "base/text.h"
#include "model/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace purlin::analyze {
namespace {

Json ns(double value) { return static_cast<std::int64_t>(std::llround(value)); }
// Estimates: beyond four digits they say nothing.
Json share(double value) { return parse_double(fmt::format("{:.4f}", value)).value_or(value); }
Json ns(const Interval3& interval) {
  return Json::object(
      {{"low", ns(interval.low)}, {"mid", ns(interval.mid)}, {"high", ns(interval.high)}});
}
Json share(const Interval3& interval) {
  return Json::object(
      {{"low", share(interval.low)}, {"mid", share(interval.mid)}, {"high", share(interval.high)}});
}

Json unit_json(const Unit& unit) {
  return Json::object({{"kind", unit.kind},
                       {"count", static_cast<std::int64_t>(unit.count)},
                       {"devices", static_cast<std::int64_t>(unit.devices)},
                       {"recorded_ns", ns(unit.recorded_ns)},
                       {"profiler_ns", ns(unit.profiler_ns)},
                       {"busy_ns", ns(unit.busy_ns)},
                       {"recorder_ns", ns(unit.recorder_ns)},
                       {"baseline_ns", ns(unit.baseline_ns)}});
}

Json record_json(const TrackRecord& record) {
  return Json::object({{"outcomes", static_cast<std::int64_t>(record.outcomes)},
                       {"inside", static_cast<std::int64_t>(record.inside)},
                       {"median_ratio", share(record.median_ratio)},
                       {"factor", record.factor ? share(*record.factor) : Json()}});
}

Json checklist_json(const std::vector<CheckItem>& items) {
  Json out = Json::array();
  for (const CheckItem& item : items)
    out.push(Json::object({{"id", item.id},
                           {"area", item.area},
                           {"text", item.text},
                           {"state", item.state},
                           {"why", item.why}}));
  return out;
}

Json evidence_json(const std::vector<Evidence>& evidence) {
  Json out = Json::array();
  for (const Evidence& item : evidence)
    out.push(Json::object({{"what", item.what}, {"value", item.value}, {"from", item.from}}));
  return out;
}

Json unknown_roof_json(const UnknownRoof& one) {
  return Json::object({{"kernel", one.kernel},
                       {"kernel_id", one.kernel_id},
                       {"ns", ns(one.ns)},
                       {"share", share(one.share)},
                       {"launch", evidence_json(one.launch)},
                       {"collect", Json::array_of(one.collect)},
                       {"look_at", Json::array_of(one.look_at)}});
}

Json intervention_json(const Intervention& one) {
  return Json::object({{"id", one.id},
                       {"place", one.place},
                       {"title", one.title},
                       {"pillar", to_text(one.pillar)},
                       {"level", to_text(one.at)},
                       {"work", to_text(one.level)},
                       {"roi", share(one.roi)},
                       {"regime", one.regime},
                       {"kernels", Json::array_of(one.kernels)},
                       {"kernels_left_out", static_cast<std::int64_t>(one.kernels_left_out)},
                       {"saved_ns", ns(one.saved_ns)},
                       {"saved_share", share(one.saved_share)},
                       {"on_top_share", one.on_top_share ? share(*one.on_top_share) : Json()},
                       {"estimate", one.estimate},
                       {"confidence", one.confidence},
                       {"effort", one.effort},
                       {"risk", one.risk},
                       {"portability", one.portability},
                       {"expertise", one.expertise},
                       {"route", one.route.empty() ? Json() : Json(one.route)},
                       {"evidence", evidence_json(one.evidence)},
                       {"how", Json::array_of(one.how)},
                       {"assumptions", Json::array_of(one.assumptions)},
                       {"guard", one.guard},
                       {"freed_bytes", one.freed_bytes != 0 ? ns(one.freed_bytes) : Json()},
                       {"doc", one.doc},
                       {"record", one.record ? record_json(*one.record) : Json()}});
}

Json replay_json(const ReplayQuality& q) {
  return Json::object({{"steps", static_cast<std::int64_t>(q.steps)},
                       {"recorded_ns", ns(q.recorded_ns)},
                       {"baseline_ns", ns(q.baseline_ns)},
                       {"constant_error", share(q.constant_error)},
                       {"step_spread", share(q.step_spread)},
                       {"residual_share", share(q.residuals)},
                       {"unlinked_share", share(q.unlinked)},
                       {"waits", static_cast<std::int64_t>(q.waits)},
                       {"unrecovered_waits", static_cast<std::int64_t>(q.unrecovered)},
                       {"events", static_cast<std::int64_t>(q.events)},
                       {"edges", static_cast<std::int64_t>(q.edges)},
                       {"lowers_confidence", q.lower_confidence}});
}

// How many of the interventions carry over to other devices.
Json portability_json(const Advice& advice) {
  Json out = Json::object({});
  for (const std::string_view kind : {"api-independent", "cuda", "opencl", "arch-specific"})
    out.set(kind, static_cast<std::int64_t>(std::count_if(
                      advice.interventions.begin(), advice.interventions.end(),
                      [&](const Intervention& one) { return one.portability == kind; })));
  return out;
}

Json listed_json(const ListedKernel& item, bool tune) {
  Json out = Json::object({{"label", item.label},
                           {"kernel_id", item.kernel_id},
                           {"op_class", item.op_class},
                           {"shape", item.shape},
                           {"dtype", item.dtype}});
  if (tune) {
    out.set("share", share(item.share));
    out.set("utilization", share(item.utilization));
    out.set("target", share(item.target));
    out.set("obsolete_after", item.obsolete_after > 0 ? Json(item.obsolete_after) : Json());
  }
  out.set(tune ? "saved_ns" : "lost_ns", ns(item.saved_ns));
  out.set("why", item.why);
  out.set("next", item.next);
  return out;
}

}  // namespace

Json to_json(const CriticalWork& one) {
  return Json::object({{"kind", one.kind},
                       {"name", one.name},
                       {"ns", ns(one.ns)},
                       {"share", share(one.share)},
                       {"count", share(one.count)}});
}

Json to_json(const Advice& advice) {
  Json out = new_document("purlin.advise/1", advice.environment);
  out.set("profile", Json::object({{"id", advice.profile_id},
                                   {"files", Json::array_of(advice.files)},
                                   {"partial", advice.partial}}));
  out.set("verdict", advice.verdict);
  out.set("verdict_text", advice.verdict_text);
  out.set("unit", unit_json(advice.unit));
  Json levels = Json::object({});
  for (std::size_t i = 0; i < kLossLevels; ++i)
    levels.set(to_text(static_cast<LossLevel>(i)), share(advice.levels[i]));
  out.set("levels", std::move(levels));
  out.set("idle_share", share(advice.idle_share));
  out.set("kernel_utilization",
          advice.kernel_utilization > 0 ? share(advice.kernel_utilization) : Json());
  out.set("judged_share", share(advice.judged_share));
  out.set("short_share", share(advice.short_share));
  out.set("idle_range", Json::object({{"low", share(advice.idle_range.low)},
                                      {"high", share(advice.idle_range.high)}}));
  out.set("tensor_cores", Json::object({{"eligible_share", share(advice.tensor.eligible)},
                                        {"used_share", share(advice.tensor.used)},
                                        {"idle_share", share(advice.tensor.idle)}}));
  Json interventions = Json::array();
  for (const Intervention& one : advice.interventions) interventions.push(intervention_json(one));
  out.set("interventions", std::move(interventions));
  Json trades = Json::array();
  for (const Intervention& one : advice.trades) trades.push(intervention_json(one));
  out.set("trades", std::move(trades));
  Json unknown = Json::array();
  for (const UnknownRoof& one : advice.unknown_roofs) unknown.push(unknown_roof_json(one));
  out.set("unknown_roofs", std::move(unknown));
  Json plan = Json::array();
  for (const PlanStep& step : advice.plan)
    plan.push(Json::object(
        {{"intervention", step.intervention},
         {"id", advice.interventions[step.intervention].id},
         {"saved_share", share(step.saved_share)},
         {"obsolete_after", step.obsolete_after > 0 ? Json(step.obsolete_after) : Json()}}));
  out.set("plan", std::move(plan));
  out.set("portability", portability_json(advice));
  out.set("interventions_left_out", advice.small_ones);
  out.set("below_spread", advice.below_spread);
  out.set("replay", advice.replay ? replay_json(*advice.replay) : Json());
  Json critical = Json::array();
  for (const CriticalWork& one : advice.critical_path) critical.push(to_json(one));
  out.set("critical_path", std::move(critical));
  out.set("nothing", advice.nothing.empty() ? Json() : Json(advice.nothing));
  Json no_gain = Json::array();
  for (const NoGain& one : advice.no_gain)
    no_gain.push(Json::object({{"what", one.what},
                               {"kernels", Json::array_of(one.kernels)},
                               {"saved_ns", one.saved_ns ? ns(*one.saved_ns) : Json()},
                               {"why", one.why}}));
  out.set("no_gain", std::move(no_gain));
  Json stalls = Json::array();
  for (const StallNote& one : advice.stalls)
    stalls.push(Json::object({{"kernel", one.kernel},
                              {"reason", one.reason},
                              {"meaning", one.meaning},
                              {"stalled_share", share(one.stalled)},
                              {"sample_share", share(one.share)},
                              {"occupancy", one.occupancy.empty() ? Json() : Json(one.occupancy)},
                              {"where", one.where.empty() ? Json() : Json(one.where)}}));
  out.set("stalls", std::move(stalls));
  Json what_if = Json::array();
  for (const WhatIf& one : advice.what_if)
    what_if.push(Json::object(
        {{"resource", one.resource},
         {"factor", one.resource == "host" || one.resource == "gpu" ? Json() : Json(one.factor)},
         {"device", one.device.empty() ? Json() : Json(one.device)},
         {"saved_ns", ns(one.saved_ns)},
         {"saved_share", share(one.saved_share)},
         {"text", one.text}}));
  out.set("what_if", std::move(what_if));
  Json tune = Json::array(), slower = Json::array();
  for (const ListedKernel& item : advice.tune) tune.push(listed_json(item, true));
  for (const ListedKernel& item : advice.slower) slower.push(listed_json(item, false));
  out.set("tune", std::move(tune));
  out.set("got_slower", std::move(slower));
  out.set("against", advice.against.empty() ? Json() : Json(advice.against));
  Json alerts = Json::array();
  for (const Alert& alert : advice.alerts)
    alerts.push(Json::object({{"id", alert.id},
                              {"severity", alert.severity},
                              {"value", share(alert.value)},
                              {"threshold", share(alert.threshold)},
                              {"kernel", alert.kernel},
                              {"kernel_id", alert.kernel_id},
                              {"profile", advice.profile_id},
                              {"text", alert.text}}));
  out.set("alerts", std::move(alerts));
  out.set("checklist", checklist_json(advice.checklist));
  out.set("notes", Json::array_of(advice.notes));
  out.set("coverage",
          Json::object(
              {{"partial", advice.partial},
               {"launches_seen", static_cast<std::int64_t>(advice.coverage.launches_seen)},
               {"launches_counted", static_cast<std::int64_t>(advice.coverage.launches_counted)},
               {"launches_lost", static_cast<std::int64_t>(advice.coverage.launches_lost)}}));
  return out;
}

}  // namespace purlin::analyze
