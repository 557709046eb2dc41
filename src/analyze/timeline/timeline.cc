// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/timeline.h"

#include "analyze/timeline/device_time.h"
#include "analyze/timeline/one_off.h"
#include "analyze/timeline/phases.h"
#include "analyze/timeline/queues.h"
#include "analyze/timeline/ranks.h"
#include "analyze/timeline/sequences.h"
#include "analyze/timeline/steps.h"
#include "base/text.h"

#include <algorithm>
#include <map>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr std::size_t kMaxGaps = 100, kMaxStreams = 256, kMaxSequences = 32;

// What the recording covered; as far as its records tell, where it does not say. What lies behind
// the last activity is no idle time where activities were left out.
Interval recording(const Timeline& timeline) {
  Interval all = {std::numeric_limits<std::int64_t>::max(),
                  std::numeric_limits<std::int64_t>::min()};
  const auto include = [&all](const auto& records) {
    for (const auto& record : records) {
      all.begin = std::min(all.begin, begin_of(record));
      all.end = std::max(all.end, end_of(record));
    }
  };
  include(timeline.activities);
  const std::int64_t last = all.end;
  if (timeline.begin_ns < timeline.end_ns) {
    all = {std::clamp(timeline.begin_ns, -kLatest, kLatest),
           std::clamp(timeline.end_ns, -kLatest, kLatest)};
  } else {
    include(timeline.calls);
    include(timeline.ops);
    include(timeline.ranges);
  }
  if (timeline.left_out > 0) all.end = std::max(all.begin, std::min(all.end, last));
  return all;
}

// What is not in the timeline, and what is therefore not known.
void find_limits(const Profile& profile, std::vector<std::string>& limits) {
  const Timeline& timeline = profile.timeline;
  const auto add = [&limits](std::string text) { limits.push_back(std::move(text)); };
  if (timeline.empty()) {
    add(profile.kernels.empty()
            ? "no device work was recorded"
            : "no timeline: the profile keeps sums and histograms only, so busy and idle time, "
              "overlap and steps are not known");
    return;
  }
  if (profile.partial) add("the profile is damaged or was cut short: later records are missing");
  if (timeline.left_out > 0)
    add(
        fmt::format("the memory limit left {} out of the timeline: it covers earlier ones only, "
                    "and idle time may hide some",
                    counted(timeline.left_out, "activity")));
  if (profile.coverage.launches_lost > 0 || profile.coverage.launches_sampled_out > 0)
    add(fmt::format(
        "{} lost or left out by sampling: idle time may hide them",
        counted(profile.coverage.launches_lost + profile.coverage.launches_sampled_out, "launch")));
  if (timeline.calls.empty()) {
    add("the host's calls were not recorded: causes of idle time, launch latency, queues and "
        "synchronisation are not known");
    return;
  }
  if (!knows_calls(timeline))
    add(knows_waits(timeline)
            ? "of the host its waits, memcpy calls and the times of launches were recorded: its "
              "other work counts as host launch; --full --ops on records all calls"
            : "of the host only the times of launches were recorded: idle time after a wait of the "
              "host counts as host launch; record waits with --full --ops on");

  std::vector<bool> used(timeline.calls.size());
  std::size_t unlinked = 0, nodes = 0;
  for (const Activity& activity : timeline.activities) {
    if (activity.call < used.size()) {
      used[activity.call] = true;
    } else if (!is_migration(profile, activity)) {
      ++unlinked;
    }
    if (is_graph_node(timeline, activity)) ++nodes;
  }
  std::size_t hidden_graphs = 0, lost = 0;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    if (timeline.calls[i].kind == CallKind::kGraphLaunch) ++hidden_graphs;
    if (timeline.calls[i].kind == CallKind::kLaunch) ++lost;
  }
  if (unlinked > 0)
    add(
        fmt::format("no known launch for {} of {}: idle time before them is attributed by the "
                    "host's work, or is 'other'",
                    unlinked, counted(timeline.activities.size(), "activity")));
  if (lost > 0)
    add(
        fmt::format("no kernel record for {} (outside of the recording, or the record was lost): "
                    "idle time may hide the kernels",
                    counted(lost, "launch")));
  if (hidden_graphs > 0 && knows_calls(timeline))
    add(fmt::format("no node records for {}: the kernels are hidden, and their time counts as idle",
                    counted(hidden_graphs, "CUDA graph launch")));
  if (nodes > 0)
    add(fmt::format("no launch latency for {} of CUDA graphs: one call launches a whole graph",
                    counted(nodes, "node")));
}

// One kernel again and again is worth a graph only where the device waits for its launches.
bool gains_from_graph(const FoundSequence& found) {
  const RepeatedSequence& sequence = found.sequence;
  return !found.graphs && !found.only_copies &&
         (sequence.length > 1 || sequence.busy_ns < sequence.total_ns / 2);
}

// Work that begins in the window; the activities are in order of begin.
StreamWork clip(const Timeline& timeline, StreamWork stream, Interval window) {
  const auto index_at = [&](std::int64_t time) {
    return std::partition_point(
        stream.activities.begin(), stream.activities.end(),
        [&](std::uint32_t index) { return begin_of(timeline.activities[index]) < time; });
  };
  stream.activities = {index_at(window.begin), index_at(window.end)};
  return stream;
}

// Queues and sequences of all streams, in the window of their device; those with most work where
// there are very many.
void add_streams(const Profile& profile, const std::map<int, Interval>& windows,
                 const std::vector<std::uint32_t>& name_numbers, TimelineAnalysis& out) {
  const Timeline& timeline = profile.timeline;
  const Streams streams(timeline);
  std::vector<StreamWork> all;
  for (const StreamWork& stream : streams.all()) {
    all.push_back(clip(timeline, stream, windows.at(stream.device)));
    if (all.back().activities.empty()) all.pop_back();
  }
  if (all.size() > kMaxStreams) {
    std::stable_sort(all.begin(), all.end(), [](const StreamWork& a, const StreamWork& b) {
      return a.activities.size() > b.activities.size();
    });
    out.limits.push_back(fmt::format(
        "queues and sequences are those of the {} busiest of {} streams", kMaxStreams, all.size()));
    all.resize(kMaxStreams);
  }
  std::vector<FoundSequence> sequences;
  for (const StreamWork& stream : all) {
    if (!timeline.calls.empty())
      out.queues.push_back(measure_queue(timeline, stream, windows.at(stream.device)));
    for (FoundSequence& found : find_sequences(profile, name_numbers, stream))
      sequences.push_back(std::move(found));
  }
  std::stable_sort(sequences.begin(), sequences.end(),
                   [](const FoundSequence& a, const FoundSequence& b) {
                     return a.sequence.total_ns > b.sequence.total_ns;
                   });
  for (const FoundSequence& found : sequences)
    if (gains_from_graph(found) && out.sequences.size() < kMaxSequences)
      out.sequences.push_back(found.sequence);
  out.launches = measure_launches(timeline, windows);
}

void add_steps(const Profile& profile, const Steps& steps, std::vector<StepTime> times, int device,
               TimelineAnalysis& out) {
  out.device_steps.push_back(mean_step(times));
  if (steps.cut > 0)
    out.limits.push_back(
        fmt::format("{}: last {} left out, because the profile lacks part of the launched work",
                    device_label(profile, device), counted(steps.cut, "step")));
  if (!out.steps.empty() || times.empty()) return;
  out.steps_from = steps.from;
  out.guessed_launches = static_cast<double>(steps.launches);
  out.guessed_share = steps.kernel_share;
  out.mean_step = out.device_steps.back();
  out.steps = std::move(times);
}

// The steps that the chosen phase holds.
Steps steps_in(const Steps& all, const PhaseCut& cut, PhaseChoice choice) {
  Steps out = all;
  const auto warm_up = out.steps.begin() + static_cast<std::ptrdiff_t>(cut.warm_up);
  if (choice == PhaseChoice::kSteadyState) out.steps.erase(out.steps.begin(), warm_up);
  if (choice == PhaseChoice::kStartUp) out.steps.erase(warm_up, out.steps.end());
  return out;
}

}  // namespace

std::string_view to_text(PhaseKind kind) {
  switch (kind) {
    case PhaseKind::kStartUp:
      return "start-up";
    case PhaseKind::kSteadyState:
      return "steady state";
    case PhaseKind::kEnd:
      return "end";
  }
  return "";
}

TimelineAnalysis analyze_timeline(const Profile& profile, PhaseChoice choice) {
  const Timeline& timeline = profile.timeline;
  TimelineAnalysis out;
  out.phase = choice;
  find_limits(profile, out.limits);
  if (timeline.empty()) return out;

  const std::vector<bool> communication = communication_rows(profile);
  const HostFacts host(profile);
  const Interval all = recording(timeline);
  const std::vector<DeviceWork> devices = split_by_device(timeline);
  const std::vector<std::uint32_t> name_numbers = number_names(profile);
  std::map<int, Interval> windows;
  for (const DeviceWork& work : devices) {
    const std::uint32_t process = main_process(timeline, work);
    const Steps steps = find_steps(profile, work, process, name_numbers);
    const PhaseCut cut = cut_phases(timeline, work, all, steps);
    for (Phase& phase : measure_phases(timeline, work, process, cut, steps))
      out.phases.push_back(std::move(phase));
    const Steps chosen = steps_in(steps, cut, choice);
    add_steps(profile, chosen, break_down(profile, work, communication, process, chosen),
              work.device, out);
    const Interval window = window_of(cut, choice);
    windows[work.device] = steps.steps.empty() ? all : window;
    std::vector<Interval> others, one_off;
    if (choice == PhaseChoice::kSteadyState) {
      others = find_other_work(timeline, work, chosen);
      one_off = find_one_off_gaps(timeline, work, parts_of(window, others), chosen.steps.size());
    }
    TimelineAnalysis::Overview overview;
    out.devices.push_back(measure_device(profile, work, communication, host, window, others,
                                         one_off, out.gaps, out.idle, overview));
    out.overview.push_back(std::move(overview));
  }
  add_streams(profile, windows, name_numbers, out);
  if (out.steps.empty() && out.phases.empty())
    out.limits.emplace_back(
        "no steps: no marks, no range with the name of a step, and no repeated round of several "
        "launches that takes half of the kernel time");
  out.ranks = compare_ranks(profile, devices, communication, out.limits);
  if (profile.processes.size() > 1 && devices.size() > 1 && out.ranks.empty())
    out.limits.emplace_back(
        "several processes were recorded: their clocks are used unchanged, and no record shows "
        "whether they agree");
  std::int64_t between = 0;
  for (const NamedInterval& pause : host.between()) between += pause.interval.length();
  if (between > 0)
    out.limits.push_back(fmt::format(
        "gaps between the recordings: {} without records count as idle time without a cause",
        format_ns(static_cast<double>(between))));
  out.syncs = host.syncs();
  for (const DeviceTime& device : out.devices)
    out.sync_idle_ns +=
        static_cast<double>(device.idle_ns[static_cast<std::size_t>(IdleCause::kSynchronization)]);
  std::stable_sort(out.gaps.begin(), out.gaps.end(),
                   [](const Gap& a, const Gap& b) { return a.duration_ns > b.duration_ns; });
  if (out.gaps.size() > kMaxGaps) out.gaps.resize(kMaxGaps);
  return out;
}

}  // namespace purlin::analyze
