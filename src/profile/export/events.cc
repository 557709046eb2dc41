// SPDX-License-Identifier: Apache-2.0
#include "profile/export/events.h"

#include "base/files.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::profile {
namespace {

// Times are foreign: what is computed with them must not overflow.
constexpr std::int64_t kLatest = std::int64_t{1} << 61;

template <class Record>
Event event_of(const std::vector<Record>& records, std::size_t index) {
  Event event;
  event.begin = std::clamp(records[index].start_ns, -kLatest, kLatest);
  event.end = event.begin + std::clamp<std::int64_t>(records[index].duration_ns, 0, kLatest);
  event.index = static_cast<std::uint32_t>(index);
  return event;
}

}  // namespace

bool ExportBuffer::flush() {
  if (!status_.is_ok()) return false;
  if (!text_.empty()) status_ = sink_(text_);
  text_.clear();
  return status_.is_ok();
}

void Tracks::end_until(std::size_t track, std::int64_t at) {
  auto& open = open_[track];
  while (!open.empty() && open.back() <= at) {
    if (ended_) ended_(track, open.back());
    open.pop_back();
  }
}

std::size_t Tracks::place(const Track& where, std::int64_t begin, std::int64_t end) {
  auto& lanes = lanes_[{where.on_device, where.owner, where.process, where.id}];
  for (const std::size_t track : lanes) {
    end_until(track, begin);
    if (!open_[track].empty() && open_[track].back() < end) continue;
    open_[track].push_back(end);
    return track;
  }
  const std::size_t track = tracks_.size();
  tracks_.push_back(where);
  tracks_.back().lane = static_cast<int>(lanes.size());
  lanes.push_back(track);
  open_.push_back({end});
  return track;
}

void Tracks::finish() {
  for (std::size_t track = 0; track < tracks_.size(); ++track)
    end_until(track, std::numeric_limits<std::int64_t>::max());
}

void for_each_event(const Timeline& timeline, const std::function<bool(const Event&)>& each) {
  std::size_t call = 0, op = 0, range = 0;
  for (;;) {
    Event next;
    const auto consider = [&next](Event event, const auto* record, auto Event::*field) {
      if (next.call != nullptr || next.op != nullptr || next.range != nullptr)
        if (std::make_pair(next.begin, -next.end) <= std::make_pair(event.begin, -event.end))
          return;
      next = event;
      next.*field = record;
      next.where = {false, record->process, record->process, record->thread, 0};
    };
    // Of those that start and end together, the order here is from outer to inner.
    if (range < timeline.ranges.size())
      consider(event_of(timeline.ranges, range), &timeline.ranges[range], &Event::range);
    if (op < timeline.ops.size())
      consider(event_of(timeline.ops, op), &timeline.ops[op], &Event::op);
    if (call < timeline.calls.size())
      consider(event_of(timeline.calls, call), &timeline.calls[call], &Event::call);
    if (next.range != nullptr) {
      ++range;
    } else if (next.op != nullptr) {
      ++op;
    } else if (next.call != nullptr) {
      ++call;
    } else {
      break;
    }
    if (!each(next)) return;
  }
  for (std::size_t i = 0; i < timeline.activities.size(); ++i) {
    const Activity& activity = timeline.activities[i];
    Event event = event_of(timeline.activities, i);
    event.activity = &activity;
    event.where = {true, activity.device, activity.process, activity.stream, 0};
    if (!each(event)) return;
  }
}

std::int64_t earliest(const Timeline& timeline) {
  std::int64_t first = kLatest;
  const auto look = [&first](const auto& records) {
    for (const auto& record : records)
      first = std::min(first, std::clamp(record.start_ns, -kLatest, kLatest));
  };
  look(timeline.activities);
  look(timeline.calls);
  look(timeline.ops);
  look(timeline.ranges);
  return first == kLatest ? 0 : first;
}

std::vector<bool> linked_calls(const Timeline& timeline) {
  std::vector<bool> linked(timeline.calls.size());
  for (const Activity& activity : timeline.activities)
    if (activity.call < linked.size()) linked[activity.call] = true;
  return linked;
}

Status require_timeline(const Profile& profile) {
  const Timeline& timeline = profile.timeline;
  if (!timeline.empty() || !timeline.calls.empty() || !timeline.ranges.empty()) return {};
  return error(
      Code::kInvalid,
      "the profile holds sums and histograms (rows: {}) but no timeline, so it has no launches to "
      "write; record with `purlin profile --full`, or give another tool's trace",
      profile.kernels.size());
}

std::string device_title(const Profile& profile, std::uint32_t device) {
  const auto& devices = profile.environment.devices;
  return fmt::format(
      "{} ({})",
      device < devices.size() && !devices[device].name.empty() ? devices[device].name : "GPU",
      device);
}

std::string process_title(const Profile& profile, std::uint32_t process) {
  if (process >= profile.processes.size()) return fmt::format("process #{}", process);
  const ProcessInfo& info = profile.processes[process];
  const std::string command = info.command.substr(0, info.command.find(' '));
  std::string title =
      fmt::format("{} ({})", command.empty() ? "process" : base_name(command), info.pid);
  if (info.rank >= 0) title += fmt::format(" rank {}", info.rank);
  return title;
}

std::string track_title(const Track& track, bool shared_device) {
  std::string title = track.on_device     ? fmt::format("stream {}", track.id)
                      : track.id == kNone ? std::string("ranges across threads")
                                          : fmt::format("thread {}", track.id);
  if (track.on_device && shared_device) title += fmt::format(" of process #{}", track.process);
  if (track.lane > 0) title += fmt::format(" ({})", track.lane + 1);
  return title;
}

std::map<std::uint32_t, bool> shared_devices(const Timeline& timeline) {
  std::map<std::uint32_t, bool> shared;
  std::map<std::uint32_t, std::uint32_t> first;
  for (const Activity& activity : timeline.activities) {
    const auto [process, added] = first.try_emplace(activity.device, activity.process);
    if (process->second != activity.process) shared[activity.device] = true;
  }
  return shared;
}

}  // namespace purlin::profile
