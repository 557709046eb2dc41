// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/savings/estimate.h"

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kStepSpread = 0.05;  // of a step's own time before a trace and in it

double idle_of(const DeviceTime& device, IdleCause cause) {
  return static_cast<double>(device.idle_ns[static_cast<std::size_t>(cause)]);
}

// Calls and ops that began in a window, of all threads.
template <class Record>
double count_in(const std::vector<Record>& records, std::int64_t begin, std::int64_t end) {
  const auto before = [](std::int64_t at) {
    return [at](const Record& record) { return record.start_ns < at; };
  };
  const auto first = std::partition_point(records.begin(), records.end(), before(begin));
  const auto last = std::partition_point(first, records.end(), before(end));
  return static_cast<double>(last - first);
}

bool is_in_parts(const DeviceTime& device, std::int64_t at) {
  const auto after = std::partition_point(device.parts.begin(), device.parts.end(),
                                          [at](const auto& part) { return part.second <= at; });
  return after != device.parts.end() && after->first <= at;
}

}  // namespace

RecorderOverhead recorder_overhead(const std::string& source) {
  if (source == "kineto") return {{1'100, 2'300, 4'500}, {500, 1'300, 2'000}};
  if (source == "purlin") return {{500, 1'100, 1'600}, {0, 0, 0}};
  if (source == "nsys") return {{500, 1'500, 3'500}, {0, 500, 1'500}};
  return {{0, 1'500, 4'500}, {0, 0, 0}};
}

Unit unit_of(const Profile& profile, const TimelineAnalysis& timeline) {
  Unit unit;
  double kernels = 0;
  for (const KernelRow& row : profile.kernels) kernels += row.duration.total_ns();
  if (timeline.devices.empty()) {
    unit.kind = "kernel_time";
    unit.recorded_ns = unit.busy_ns = kernels;
    unit.baseline_ns = {kernels, kernels, kernels};
    return unit;
  }
  unit.kind = timeline.steps.empty() ? "run" : "step";
  unit.count = timeline.steps.empty() ? 1 : static_cast<double>(timeline.steps.size());
  unit.devices = static_cast<double>(timeline.devices.size());
  unit.mean_step_ns = static_cast<double>(timeline.mean_step.duration_ns);
  const double share = 1 / (unit.count * unit.devices);
  const RecorderOverhead cost = recorder_overhead(profile.source);
  double in_window = 0, in_all = 0;
  for (const DeviceTime& device : timeline.devices) {
    unit.recorded_ns += share * static_cast<double>(device.span_ns);
    unit.busy_ns += share * static_cast<double>(device.busy_ns);
    unit.profiler_ns += share * idle_of(device, IdleCause::kProfiler);
    unit.host_ns += share * idle_of(device, IdleCause::kHostLaunch);
    double calls = 0, ops = 0;
    for (const auto& [begin, end] : device.parts) {
      calls += count_in(profile.timeline.calls, begin, end);
      ops += count_in(profile.timeline.ops, begin, end);
    }
    // Of all devices' hosts together; each device waits for its own.
    unit.recorder_ns = unit.recorder_ns +
                       (cost.call * calls + cost.op * ops) * (share / std::max(1.0, unit.devices));
  }
  const double known = unit.kind == "step" ? profile.coverage.step_ns : 0;
  if (known > 0) {
    const double added = unit.recorded_ns - unit.profiler_ns - known;
    unit.recorder_ns = {added - kStepSpread * known, added, added + kStepSpread * known};
    for (double* end : {&unit.recorder_ns.low, &unit.recorder_ns.mid, &unit.recorder_ns.high})
      *end = std::max(0.0, *end);
  }
  // A recorder that slows the host costs nothing while the device has work queued.
  for (double* end : {&unit.recorder_ns.low, &unit.recorder_ns.mid, &unit.recorder_ns.high})
    *end = std::min(*end, unit.host_ns);
  const double base = unit.recorded_ns - unit.profiler_ns;
  unit.baseline_ns = {base - unit.recorder_ns.high, base - unit.recorder_ns.mid,
                      base - unit.recorder_ns.low};
  for (const Activity& activity : profile.timeline.activities) {
    if (activity.kind != ActivityKind::kKernel) continue;
    const auto length = static_cast<double>(std::max<std::int64_t>(0, activity.duration_ns));
    in_all += length;
    for (const DeviceTime& device : timeline.devices)
      if (device.device == activity.device && is_in_parts(device, activity.start_ns))
        in_window += length;
  }
  // The timeline may hold a part of what the sketches hold.
  unit.kernel_scale = kernels > 0 && in_all > 0 ? share * in_window / in_all : share;
  if (profile.timeline.left_out > 0 && kernels > 0) unit.kernel_scale *= in_all / kernels;
  return unit;
}

double saved_by_more(const Roof& roof, double compute_factor, double memory_factor) {
  const double now = std::max(roof.compute_share, roof.memory_share);
  if (roof.utilization <= 0 || roof.bound == Bound::kLatency) return 0;
  // Busy by the tool's own account, with what is no FLOPs and no DRAM traffic.
  if (roof.ceiling == "memory throughput") return 1 - 1 / memory_factor;
  if (roof.ceiling == "sm throughput") return 1 - 1 / compute_factor;
  if (now <= 0) return 0;
  const double then =
      std::max(roof.compute_share / compute_factor, roof.memory_share / memory_factor);
  return 1 - then / now;
}

}  // namespace purlin::analyze
