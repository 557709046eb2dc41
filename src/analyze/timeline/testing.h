// SPDX-License-Identifier: Apache-2.0
// Timelines for tests, written event by event or generated at random. Tests only.
#pragma once

#include "base/random.h"
#include "model/profile/profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

class TimelineBuilder {
 public:
  explicit TimelineBuilder(int devices = 1) {
    profile.environment.devices.resize(static_cast<std::size_t>(devices));
    profile.processes.resize(1);
  }
  std::uint32_t name(std::string_view text) {
    auto& names = profile.timeline.names;
    for (std::uint32_t i = 0; i < names.size(); ++i)
      if (names[i] == text) return i;
    names.emplace_back(text);
    return static_cast<std::uint32_t>(names.size() - 1);
  }
  // Rows are made on demand; `grid` tells launch shapes of one kernel apart.
  std::uint32_t kernel_row(std::string_view kernel, std::uint32_t grid = 1) {
    for (std::uint32_t i = 0; i < profile.kernels.size(); ++i)
      if (profile.kernels[i].name == kernel && profile.kernels[i].launch.grid[0] == grid) return i;
    KernelRow row;
    row.name = kernel;
    row.launch.grid[0] = grid;
    profile.kernels.push_back(row);
    return static_cast<std::uint32_t>(profile.kernels.size() - 1);
  }
  Activity& kernel(std::string_view kernel, std::int64_t start, std::int64_t duration,
                   std::uint32_t call = kNone, std::uint32_t stream = 7, int device = 0) {
    Activity activity;
    activity.start_ns = start;
    activity.duration_ns = duration;
    activity.row = kernel_row(kernel);
    activity.call = call;
    activity.stream = stream;
    activity.device = static_cast<std::uint16_t>(device);
    profile.timeline.activities.push_back(activity);
    return profile.timeline.activities.back();
  }
  Activity& copy(std::string_view kind, std::int64_t start, std::int64_t duration,
                 std::uint32_t call = kNone, std::uint32_t stream = 7, int device = 0) {
    Activity activity;
    activity.kind = kind == "memset" ? ActivityKind::kSet : ActivityKind::kCopy;
    activity.start_ns = start;
    activity.duration_ns = duration;
    activity.call = call;
    activity.stream = stream;
    activity.device = static_cast<std::uint16_t>(device);
    auto& rows = profile.copies;
    while (activity.row < rows.size() && rows[activity.row].kind != kind) ++activity.row;
    if (activity.row == rows.size()) {
      rows.emplace_back();
      rows.back().kind = kind;
    }
    profile.timeline.activities.push_back(activity);
    return profile.timeline.activities.back();
  }
  // Returns its index, for activities to point at; the builder keeps no order, sorted() does.
  std::uint32_t call(CallKind kind, std::string_view what, std::int64_t start,
                     std::int64_t duration, std::uint32_t thread = 1, std::uint32_t process = 0) {
    Call call;
    call.kind = kind;
    call.name = name(what);
    call.start_ns = start;
    call.duration_ns = duration;
    call.thread = thread;
    call.process = process;
    profile.timeline.calls.push_back(call);
    return static_cast<std::uint32_t>(profile.timeline.calls.size() - 1);
  }
  std::uint32_t launch(std::int64_t start, std::int64_t duration) {
    return call(CallKind::kLaunch, "cudaLaunchKernel", start, duration);
  }
  void op(std::string_view what, std::int64_t start, std::int64_t duration) {
    Op op;
    op.name = name(what);
    op.start_ns = start;
    op.duration_ns = duration;
    op.thread = 1;
    profile.timeline.ops.push_back(op);
  }
  void range(RangeKind kind, std::string_view what, std::int64_t start, std::int64_t duration,
             std::uint32_t process = 0) {
    Range range;
    range.kind = kind;
    range.name = name(what);
    range.start_ns = start;
    range.duration_ns = duration;
    range.thread = 1;
    range.process = process;
    profile.timeline.ranges.push_back(range);
  }
  const Profile& sorted() {
    sort_timeline(profile.timeline);
    return profile;
  }
  Profile profile;
};

// Anything that the types allow: overlaps, empty and negative durations, launches after their
// kernels, streams, devices and processes at will. Times lie in [0, length).
inline Profile random_timeline(Random& random, std::int64_t length) {
  TimelineBuilder builder(2);
  builder.profile.processes.resize(2);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(n)));
  };
  const auto duration = [&] { return below(10) == 0 ? -below(5) : below(length / 8); };
  constexpr CallKind kKinds[] = {CallKind::kLaunch, CallKind::kGraphLaunch, CallKind::kCopy,
                                 CallKind::kSync,   CallKind::kAllocation,  CallKind::kOther};
  const std::int64_t calls = below(30);
  for (std::int64_t i = 0; i < calls; ++i)
    builder.call(kKinds[below(6)], below(2) != 0 ? "cudaMemcpy" : "cudaX", below(length),
                 duration(), static_cast<std::uint32_t>(below(2)),
                 static_cast<std::uint32_t>(below(2)));
  const std::int64_t activities = 1 + below(30);
  for (std::int64_t i = 0; i < activities; ++i) {
    const auto call = calls > 0 && below(3) != 0 ? static_cast<std::uint32_t>(below(calls)) : kNone;
    const auto stream = static_cast<std::uint32_t>(below(3));
    const int device = static_cast<int>(below(2));
    Activity* activity = nullptr;
    switch (below(4)) {
      case 0:
        activity = &builder.copy("h2d", below(length), duration(), call, stream, device);
        break;
      case 1:
        activity = &builder.copy("memset", below(length), duration(), call, stream, device);
        break;
      case 2:
        activity = &builder.kernel("ncclDevKernel_AllReduce", below(length), duration(), call,
                                   stream, device);
        break;
      default:
        activity = &builder.kernel(below(2) != 0 ? "gemm" : "relu", below(length), duration(), call,
                                   stream, device);
    }
    activity->process = static_cast<std::uint32_t>(below(2));
  }
  constexpr RangeKind kRanges[] = {RangeKind::kStep, RangeKind::kDataLoader,
                                   RangeKind::kCommunication, RangeKind::kUser,
                                   RangeKind::kProfiler};
  for (std::int64_t i = below(12); i > 0; --i)
    builder.range(kRanges[below(5)], "range", below(length), duration(),
                  static_cast<std::uint32_t>(below(2)));
  for (std::int64_t i = below(12); i > 0; --i) builder.op("aten::x", below(length), duration());
  return builder.sorted();
}

}  // namespace purlin::analyze
