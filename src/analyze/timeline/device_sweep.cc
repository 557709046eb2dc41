// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/device_sweep.h"

#include "analyze/kernel_name/kernel_name.h"

#include <string_view>
#include <unordered_map>

namespace purlin::analyze {

std::vector<DeviceWork> split_by_device(const Timeline& timeline) {
  std::vector<DeviceWork> devices;
  const auto& activities = timeline.activities;
  for (std::size_t i = 0; i < activities.size();) {
    const std::uint16_t device = activities[i].device;
    const auto last = std::partition_point(
        activities.begin() + static_cast<std::ptrdiff_t>(i), activities.end(),
        [device](const Activity& activity) { return activity.device <= device; });
    const auto end = static_cast<std::size_t>(last - activities.begin());
    devices.push_back({device, i, end});
    i = end;
  }
  return devices;
}

std::vector<bool> communication_rows(const Profile& profile) {
  std::vector<bool> rows;
  std::unordered_map<std::string_view, bool> names;  // many rows, few names
  for (const KernelRow& row : profile.kernels) {
    const auto [name, added] = names.try_emplace(row.name, false);
    if (added) name->second = describe_kernel(row.name).op_class == "communication";
    rows.push_back(name->second);
  }
  return rows;
}

unsigned work_of(const Activity& activity, const std::vector<bool>& communication) {
  if (activity.kind == ActivityKind::kCopy) return kCopying;
  if (activity.kind == ActivityKind::kSet) return kSetting;
  return activity.row < communication.size() && communication[activity.row] ? kCommunicating
                                                                            : kCompute;
}

void sweep_device(const Timeline& timeline, const DeviceWork& work,
                  const std::vector<bool>& communication, Interval window,
                  const std::function<void(const Segment&)>& segment) {
  std::array<std::int64_t, 4> until;  // of each class: the end of what was begun so far
  until.fill(window.begin);
  std::int64_t at = window.begin, last_end = std::numeric_limits<std::int64_t>::min();
  std::size_t before = Segment::kNowhere;
  const auto advance = [&](std::int64_t to, std::size_t next) {
    while (at < to) {
      unsigned mask = 0;
      std::int64_t end = to;
      for (unsigned c = 0; c < until.size(); ++c)
        if (until[c] > at) {
          mask |= 1u << c;
          end = std::min(end, until[c]);
        }
      segment({{at, end}, mask, before, end == to ? next : Segment::kNowhere});
      at = end;
    }
  };
  for (std::size_t i = work.first; i < work.last; ++i) {
    const Activity& activity = timeline.activities[i];
    if (begin_of(activity) >= window.end) break;
    const std::int64_t end = end_of(activity);
    if (end >= window.begin) {
      advance(begin_of(activity), i);
      const unsigned kind = work_of(activity, communication);
      const std::size_t c = kind == kCompute         ? 0
                            : kind == kCommunicating ? 1
                            : kind == kCopying       ? 2
                                                     : 3;
      until[c] = std::max(until[c], std::min(end, window.end));
    }
    if (end >= last_end) {
      last_end = end;
      before = i;
    }
  }
  advance(window.end, Segment::kNowhere);
}

}  // namespace purlin::analyze
