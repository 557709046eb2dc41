// SPDX-License-Identifier: Apache-2.0
// Order: the tasks that can save the most GPU time come first.
//
// The saving of a task is its GPU time × its headroom. Where a task does not know a fact, another
// task of the same kernel, shape and device may know it; else an assumption below holds. Equal
// savings are ordered by the number of findings and then by the key, so that the same tasks always
// have the same order. Pure functions, safe on any thread. Cannot fail.
#pragma once

#include "backlog/task.h"

#include <vector>

namespace purlin::backlog {

// What holds where no source measured the fact.
struct Assumption {
  static constexpr double kLaunchNs = 10'000;    // GPU time of a launch
  static constexpr std::uint64_t kLaunches = 1;  // of a finding without a count
  static constexpr double kHeadroom = 0.2;       // a slowdown of 1.25 has the same
};

struct RankedTask {
  Task task;
  double gpu_time_ns = 0;     // launches × GPU time of a launch
  double headroom = 0;        // between 0 and 1
  bool time_assumed = false;  // launches or the GPU time of a launch are assumptions
  bool headroom_assumed = false;

  double saving_ns() const { return gpu_time_ns * headroom; }
};

// The headroom that the task states, else that of its slowdown: 1 − 1 / ratio.
std::optional<double> known_headroom(const Task& task);

std::vector<RankedTask> ranked(std::vector<Task> tasks);

// A task of `purlin.backlog-list/1`: its members, and those that the order follows from.
Json to_json(const RankedTask& ranked);
// The reverse. A member that is absent or of another type is not known.
RankedTask ranked_from_json(const Json& json);

}  // namespace purlin::backlog
