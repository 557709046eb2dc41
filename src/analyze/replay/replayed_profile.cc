// SPDX-License-Identifier: Apache-2.0
// A replayed window as a profile, for a viewer: work and calls at their new times; ops and ranges
// move with the calls of their thread.
#include "analyze/replay/replayer.h"

#include <algorithm>
#include <map>
#include <utility>

namespace purlin::analyze {
namespace {

// Recorded time of a host thread -> replayed time, straight between the ends of its calls.
class ThreadTime {
 public:
  void add(std::int64_t recorded, std::int64_t replayed) {
    if (points_.empty() || recorded >= points_.back().first)
      points_.emplace_back(recorded,
                           points_.empty() ? replayed : std::max(replayed, points_.back().second));
  }
  std::int64_t at(std::int64_t time) const {
    const auto after = std::partition_point(points_.begin(), points_.end(),
                                            [&](const auto& point) { return point.first <= time; });
    if (after == points_.begin()) return after->second - (after->first - time);
    const auto before = after - 1;
    const std::int64_t beyond = time - before->first;
    if (after == points_.end()) return before->second + beyond;
    const auto share =
        static_cast<double>(beyond) / static_cast<double>(after->first - before->first);
    return before->second +
           static_cast<std::int64_t>(share * static_cast<double>(after->second - before->second));
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> points_;
};

}  // namespace

Profile Replayer::timeline_of(const Replayed& replayed) const {
  const Timeline& from = profile_.timeline;
  Profile out = profile_;
  Timeline& to = out.timeline;
  to.activities.clear();
  to.calls.clear();
  to.ops.clear();
  to.ranges.clear();
  to.begin_ns = to.end_ns = 0;
  const auto time = [&](std::uint32_t node) {
    return graph_.origin_ns + static_cast<std::int64_t>(replayed.times[node]);
  };
  const auto gone = [](const std::vector<bool>& list, std::size_t i) {
    return i < list.size() && list[i];
  };
  const auto place = [&](auto& record, NodePair nodes) {
    record.start_ns = time(nodes.begin);
    record.duration_ns = time(nodes.end) - record.start_ns;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, ThreadTime> threads;
  std::vector<std::uint32_t> places(from.calls.size(), kNone);
  for (std::size_t i = 0; i < from.calls.size(); ++i) {
    const NodePair nodes = graph_.calls[i];
    if (nodes.begin == kNone) continue;
    Call call = from.calls[i];
    place(call, nodes);
    ThreadTime& thread = threads[{call.process, call.thread}];
    thread.add(from.calls[i].start_ns, call.start_ns);
    thread.add(end_of(from.calls[i]), end_of(call));
    call.op = kNone;
    if (gone(replayed.applied.gone_calls, i)) continue;
    places[i] = static_cast<std::uint32_t>(to.calls.size());
    to.calls.push_back(call);
  }
  for (std::size_t i = 0; i < from.activities.size(); ++i) {
    const NodePair nodes = graph_.activities[i];
    if (nodes.begin == kNone || gone(replayed.applied.gone_activities, i)) continue;
    Activity activity = from.activities[i];
    place(activity, nodes);
    const std::uint32_t call = activity.call;
    activity.call = call < graph_.outer.size() ? places[graph_.outer[call]] : kNone;
    to.activities.push_back(activity);
  }
  const auto move = [&](const auto& records, auto& moved) {
    for (auto record : records) {
      const auto thread = threads.find({record.process, record.thread});
      if (thread == threads.end() || end_of(record) < graph_.origin_ns ||
          begin_of(record) > graph_.window.end)
        continue;
      const std::int64_t end = thread->second.at(end_of(record));
      record.start_ns = thread->second.at(begin_of(record));
      record.duration_ns = std::max<std::int64_t>(0, end - record.start_ns);
      if constexpr (requires { record.parent; }) record.parent = kNone;
      moved.push_back(record);
    }
  };
  move(from.ops, to.ops);
  move(from.ranges, to.ranges);
  sort_timeline(to);
  return out;
}

}  // namespace purlin::analyze
