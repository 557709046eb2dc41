// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/phases.h"

#include "analyze/timeline/median.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <unordered_map>

namespace purlin::analyze {
namespace {

constexpr std::size_t kNamedCalls = 3;

// First begin to last end; an empty interval at the recording's begin where there is no work.
Interval extent_of(const Timeline& timeline, const DeviceWork& work, Interval recording) {
  if (work.first == work.last) return {recording.begin, recording.begin};
  Interval extent = interval_of(timeline.activities[work.first]);
  for (std::size_t i = work.first; i < work.last; ++i)
    extent.end = std::max(extent.end, end_of(timeline.activities[i]));
  return extent;
}

// Calls of a process that begin in the window. A call inside of another of its thread is a part of
// that one.
std::vector<HostCalls> longest_calls(const Timeline& timeline, std::uint32_t process,
                                     Interval window) {
  std::map<std::uint32_t, HostCalls> by_name;
  std::unordered_map<std::uint32_t, std::int64_t> ends;  // of each thread's outer call
  auto call = std::partition_point(timeline.calls.begin(), timeline.calls.end(),
                                   [&](const Call& c) { return begin_of(c) < window.begin; });
  for (; call != timeline.calls.end() && begin_of(*call) < window.end; ++call) {
    if (call->process != process || call->duration_ns <= 0) continue;
    const Interval interval = interval_of(*call);
    const auto [end, first] = ends.try_emplace(call->thread, interval.end);
    if (!first) {
      if (interval.begin < end->second) continue;
      end->second = interval.end;
    }
    HostCalls& calls = by_name[call->name];
    ++calls.count;
    calls.total_ns += clip(interval, window).length();
  }
  std::vector<HostCalls> out;
  for (auto& [name, calls] : by_name) {
    if (name < timeline.names.size()) calls.name = timeline.names[name];
    out.push_back(std::move(calls));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const HostCalls& a, const HostCalls& b) { return a.total_ns > b.total_ns; });
  if (out.size() > kNamedCalls) out.resize(kNamedCalls);
  return out;
}

void add_work(const Timeline& timeline, const DeviceWork& work, Phase& phase) {
  const Interval window = {phase.begin_ns, phase.begin_ns + phase.span_ns};
  std::int64_t until = window.begin;
  for (std::size_t i = work.first; i < work.last; ++i) {
    const Activity& activity = timeline.activities[i];
    const Interval interval = interval_of(activity);
    if (interval.begin >= window.end) break;
    const Interval inside = clip(interval, window);
    phase.busy_ns += std::max<std::int64_t>(0, inside.end - std::max(until, inside.begin));
    until = std::max(until, inside.end);
    if (activity.kind != ActivityKind::kKernel || interval.begin < window.begin) continue;
    ++phase.kernels;
    phase.kernel_ns += interval.length();
  }
}

// Time of the activities that begin in the interval.
std::int64_t busy_in(const Timeline& timeline, const DeviceWork& work, Interval window) {
  const auto begin = timeline.activities.begin() + static_cast<std::ptrdiff_t>(work.first);
  const auto end = timeline.activities.begin() + static_cast<std::ptrdiff_t>(work.last);
  auto at = std::partition_point(
      begin, end, [&](const Activity& activity) { return begin_of(activity) < window.begin; });
  std::int64_t busy = 0, until = window.begin;
  for (; at != end && begin_of(*at) < window.end; ++at) {
    const Interval inside = clip(interval_of(*at), window);
    busy += std::max<std::int64_t>(0, inside.end - std::max(until, inside.begin));
    until = std::max(until, inside.end);
  }
  return busy;
}

}  // namespace

PhaseCut cut_phases(const Timeline& timeline, const DeviceWork& work, Interval recording,
                    const Steps& steps) {
  PhaseCut cut;
  cut.recording = recording;
  if (steps.steps.empty()) {
    cut.steady = extent_of(timeline, work, recording);
    return cut;
  }
  cut.warm_up = count_warm_up(steps.steps);
  cut.steady = {steps.steps[cut.warm_up].window.begin, steps.steps.back().window.end};
  // Marks of the host may lie outside of what a recording says that it covered.
  cut.recording.begin = std::min(recording.begin, cut.steady.begin);
  cut.recording.end = std::max(recording.end, cut.steady.end);
  return cut;
}

std::vector<Interval> find_other_work(const Timeline& timeline, const DeviceWork& work,
                                      const Steps& steps) {
  constexpr double kLeastBusy = 0.1;
  const std::vector<Step>& all = steps.steps;
  if (steps.from != "ranges" && steps.from != "user ranges") return {};
  std::vector<std::int64_t> lengths;
  for (const Step& step : all) lengths.push_back(step.window.length());
  if (lengths.size() < 2) return {};
  const std::int64_t usual = median_of(std::move(lengths));
  std::vector<Interval> others;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Interval between = {all[i - 1].window.end, all[i].window.begin};
    if (2 * between.length() <= usual) continue;
    const auto busy = static_cast<double>(busy_in(timeline, work, between));
    if (busy >= kLeastBusy * static_cast<double>(between.length())) others.push_back(between);
  }
  if (2 * others.size() >= all.size()) return {};  // it belongs to the steps
  return others;
}

std::vector<Interval> parts_of(Interval window, const std::vector<Interval>& others) {
  std::vector<Interval> parts;
  std::int64_t begin = window.begin;
  for (const Interval& other : others) {
    if (other.begin < begin || other.end > window.end) continue;
    if (other.begin > begin) parts.push_back({begin, other.begin});
    begin = other.end;
  }
  parts.push_back({begin, std::max(begin, window.end)});
  return parts;
}

Interval window_of(const PhaseCut& cut, PhaseChoice choice) {
  if (choice == PhaseChoice::kAll) return cut.recording;
  if (choice == PhaseChoice::kStartUp && cut.recording.begin < cut.steady.begin)
    return {cut.recording.begin, cut.steady.begin};
  return cut.steady;
}

std::vector<Phase> measure_phases(const Timeline& timeline, const DeviceWork& work,
                                  std::uint32_t process, const PhaseCut& cut, const Steps& steps) {
  std::vector<Phase> phases;
  if (steps.steps.empty()) return phases;
  const auto add = [&](PhaseKind kind, Interval window, std::size_t step_count) {
    if (window.length() <= 0) return;
    Phase& phase = phases.emplace_back();
    phase.kind = kind;
    phase.device = work.device;
    phase.begin_ns = window.begin;
    phase.span_ns = window.length();
    phase.steps = static_cast<int>(step_count);
    phase.calls = longest_calls(timeline, process, window);
    add_work(timeline, work, phase);
  };
  add(PhaseKind::kStartUp, {cut.recording.begin, cut.steady.begin}, cut.warm_up);
  add(PhaseKind::kSteadyState, cut.steady, steps.steps.size() - cut.warm_up);
  add(PhaseKind::kEnd, {cut.steady.end, cut.recording.end}, 0);
  return phases;
}

}  // namespace purlin::analyze
