// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/timeline.h"

#include <cmath>

namespace purlin::analyze {
namespace {

Json count(double value) {
  return value == std::floor(value) && std::abs(value) < 9e15
             ? Json(static_cast<std::int64_t>(value))
             : Json(value);
}

Json share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? Json(static_cast<double>(part) / static_cast<double>(whole)) : Json();
}

void add_device(Json& out, const DeviceTime& time) {
  out.set("device", time.device);
  out.set("begin_ns", time.begin_ns);
  out.set("window_ns", time.window_ns);
  out.set("span_ns", time.span_ns);
  out.set("one_off_ns", time.one_off_ns);
  out.set("one_off_gaps", time.one_off_gaps);
  out.set("other_work_ns", time.other_work_ns);
  out.set("other_works", time.other_works);
  out.set("busy_ns", time.busy_ns);
  out.set("idle_ns", time.idle_total_ns());
  out.set("busy_share", share(time.busy_ns, time.span_ns));
  out.set("kernel_ns", time.kernel_ns);
  out.set("utilization", share(time.kernel_ns, time.span_ns));
  Json causes = Json::object();
  for (std::size_t c = 0; c < kIdleCauses; ++c)
    causes.set(to_text(static_cast<IdleCause>(c)), time.idle_ns[c]);
  out.set("idle_causes", std::move(causes));
  out.set("overlap",
          Json::object({{"compute_ns", time.compute_ns},
                        {"communication_ns", time.communication_ns},
                        {"copy_ns", time.copy_ns},
                        {"compute_and_copy_ns", time.compute_and_copy_ns},
                        {"compute_and_communication_ns", time.compute_and_communication_ns},
                        {"exposed_communication_ns", time.exposed_communication_ns},
                        {"exposed_copy_ns", time.exposed_copy_ns},
                        {"communication_overlap",
                         share(time.compute_and_communication_ns, time.communication_ns)},
                        {"copy_overlap", share(time.compute_and_copy_ns, time.copy_ns)}}));
  out.set("streams", time.streams);
  out.set("activities", count(time.activities));
  out.set("work", Json::object({{"begin_ns", time.work_begin_ns},
                                {"span_ns", time.work_span_ns},
                                {"busy_ns", time.work_busy_ns},
                                {"idle_ns", time.work_span_ns - time.work_busy_ns},
                                {"kernel_sum_ns", count(time.kernel_sum_ns)}}));
}

Json step_json(const StepTime& step) {
  return Json::object({{"name", step.name},
                       {"start_ns", step.start_ns},
                       {"duration_ns", step.duration_ns},
                       {"kernel_ns", step.kernel_ns},
                       {"communication_ns", step.communication_ns},
                       {"copy_ns", step.copy_ns},
                       {"set_ns", step.set_ns},
                       {"runtime_ns", step.runtime_ns},
                       {"data_loader_ns", step.data_loader_ns},
                       {"cpu_ns", step.cpu_ns},
                       {"other_ns", step.other_ns}});
}

Json gap_json(const Gap& gap) {
  return Json::object({{"device", gap.device},
                       {"start_ns", gap.start_ns},
                       {"duration_ns", gap.duration_ns},
                       {"cause", to_text(gap.cause)},
                       {"before", gap.before},
                       {"after", gap.after},
                       {"evidence", gap.evidence},
                       {"one_off", gap.one_off}});
}

Json phase_json(const Phase& phase) {
  Json calls = Json::array();
  for (const HostCalls& call : phase.calls)
    calls.push(Json::object(
        {{"name", call.name}, {"count", count(call.count)}, {"total_ns", call.total_ns}}));
  return Json::object({{"phase", to_text(phase.kind)},
                       {"device", phase.device},
                       {"begin_ns", phase.begin_ns},
                       {"span_ns", phase.span_ns},
                       {"busy_ns", phase.busy_ns},
                       {"kernels", count(phase.kernels)},
                       {"kernel_ns", phase.kernel_ns},
                       {"steps", phase.steps},
                       {"calls", std::move(calls)}});
}

Json queue_json(const QueueStats& queue) {
  return Json::object({{"device", queue.device},
                       {"process", queue.process},
                       {"stream", queue.stream},
                       {"mean_depth", queue.mean_depth},
                       {"max_depth", queue.max_depth},
                       {"full_ns", queue.full_ns}});
}

Json launches_json(const LaunchStats& launches) {
  return Json::object({{"launches", count(launches.launches)},
                       {"call_p50_ns", launches.call_p50_ns},
                       {"latency_p50_ns", launches.latency_p50_ns},
                       {"latency_p95_ns", launches.latency_p95_ns},
                       {"tiny", count(launches.tiny)},
                       {"tiny_ns", count(launches.tiny_ns)}});
}

Json sequence_json(const RepeatedSequence& sequence) {
  return Json::object({{"kernels", Json::array_of(sequence.kernels)},
                       {"length", sequence.length},
                       {"repeats", sequence.repeats},
                       {"total_ns", sequence.total_ns},
                       {"busy_ns", sequence.busy_ns},
                       {"hindrance", sequence.hindrance},
                       {"device", sequence.device},
                       {"process", sequence.process},
                       {"stream", sequence.stream}});
}

Json rank_json(const RankStats& rank) {
  return Json::object({{"device", rank.device},
                       {"rank", rank.rank < 0 ? Json() : Json(rank.rank)},
                       {"collectives", count(rank.collectives)},
                       {"last", count(rank.last)},
                       {"late_ns", rank.late_ns},
                       {"clock_offset_ns", rank.clock_offset_ns}});
}

Json overview_json(const TimelineAnalysis::Overview& overview) {
  Json shares = Json::array();
  for (const auto& bucket : overview.shares) {
    Json item = Json::array();
    // Four decimals: they are for drawing.
    for (const float value : bucket) item.push(std::round(static_cast<double>(value) * 1e4) / 1e4);
    shares.push(std::move(item));
  }
  return Json::object({{"device", overview.device},
                       {"begin_ns", overview.begin_ns},
                       {"bucket_ns", overview.bucket_ns},
                       {"shares", std::move(shares)}});
}

template <class Items, class ToJson>
Json list(const Items& items, ToJson to_json) {
  Json out = Json::array();
  for (const auto& item : items) out.push(to_json(item));
  return out;
}

}  // namespace

std::string_view to_text(IdleCause cause) {
  switch (cause) {
    case IdleCause::kHostLaunch:
      return "host_launch";
    case IdleCause::kDataStarvation:
      return "data_starvation";
    case IdleCause::kSynchronization:
      return "synchronization";
    case IdleCause::kKernelToKernel:
      return "kernel_to_kernel";
    case IdleCause::kProfiler:
      return "profiler";
    case IdleCause::kOther:
      return "other";
  }
  return "other";
}

std::string_view to_text(PhaseChoice choice) {
  switch (choice) {
    case PhaseChoice::kSteadyState:
      return "steady";
    case PhaseChoice::kStartUp:
      return "startup";
    case PhaseChoice::kAll:
      return "all";
  }
  return "";
}

Json to_json(const TimelineAnalysis& analysis) {
  Json out = Json::object();
  // The first device's figures at the top, all devices' in the list.
  if (!analysis.devices.empty()) add_device(out, analysis.devices.front());
  Json devices = Json::array();
  for (std::size_t i = 0; i < analysis.devices.size(); ++i) {
    Json item = Json::object();
    add_device(item, analysis.devices[i]);
    if (i < analysis.device_steps.size() && analysis.device_steps[i].duration_ns > 0)
      item.set("mean_step", step_json(analysis.device_steps[i]));
    devices.push(std::move(item));
  }
  out.set("devices", std::move(devices));
  out.set("phase", to_text(analysis.phase));
  out.set("phases", list(analysis.phases, phase_json));
  out.set("rows_of_phase", analysis.rows_of_phase);
  out.set("outside", Json::object({{"launches", count(analysis.launches_outside)},
                                   {"kernel_ns", count(analysis.kernel_ns_outside)}}));
  out.set("steps_from", analysis.steps_from);
  out.set("steps_guessed", analysis.steps_from == kGuessedSteps);
  out.set("steps", list(analysis.steps, step_json));
  out.set("mean_step", analysis.steps.empty() ? Json() : step_json(analysis.mean_step));
  out.set("gaps", list(analysis.gaps, gap_json));
  out.set("queues", list(analysis.queues, queue_json));
  out.set("launches", launches_json(analysis.launches));
  out.set("sequences", list(analysis.sequences, sequence_json));
  out.set("syncs", count(analysis.syncs));
  out.set("sync_idle_ns", count(analysis.sync_idle_ns));
  out.set("ranks", list(analysis.ranks, rank_json));
  out.set("overview", list(analysis.overview, overview_json));
  out.set("limits", Json::array_of(analysis.limits));
  return out;
}

}  // namespace purlin::analyze
