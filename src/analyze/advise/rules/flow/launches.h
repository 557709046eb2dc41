// SPDX-License-Identifier: Apache-2.0
// FlowWork: the ops of the timeline that a recorded data flow speaks of, and what they launch. An
// op of a step is found by its name and its place among those of that name, in the steps that have
// as many of them as the recorded step. Linear in the timeline. Pure functions over a walk.
#pragma once

#include "analyze/advise/rules/walk.h"
#include "model/profile/data_flow.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::analyze {

// One fact, in all steps. An op of several facts has the one that saves most.
struct FlowWork {
  const FlowFact* fact = nullptr;
  std::uint32_t earlier = kNone;   // kRepeated: the earlier op, in one of the steps
  std::vector<std::uint32_t> ops;  // indices into Timeline::ops, one for each step
  std::vector<Launches> groups;    // of each of these; launches that no rule has taken
  Launches all() const;
};
using FlowWorks = std::vector<const FlowWork*>;
double time_of(const Walk& walk, const FlowWork& work);  // ns, of all its launches

struct FlowFound {
  std::vector<FlowWork> work;  // of the facts whose ops are in the timeline
  std::size_t missing = 0;     // facts whose ops are in none of its steps
  std::size_t steps = 0;       // of the timeline, in all processes
  std::size_t without_op = 0;  // kernels: what they read and write was not recorded
  // The data flow is of a program like the recorded one, and of all of it.
  bool tells_all() const { return steps > 0 && missing <= work.size() && without_op == 0; }
};
FlowFound find_flow(const Walk& walk);

}  // namespace purlin::analyze
