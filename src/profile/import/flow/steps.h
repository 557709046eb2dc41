// SPDX-License-Identifier: Apache-2.0
// The steps of an execution trace: between marks `ProfilerStep#…`, else between the ends of
// `Optimizer.step#…`, as the timeline has them. Without marks, the shortest sequence of ops that
// comes again and again until the trace ends. A step that the trace ends in is none. Pure
// functions.
#pragma once

#include "profile/import/flow/trace.h"

#include <cstdint>
#include <vector>

namespace purlin::profile::flow {

struct FlowStep {
  std::uint32_t begin = 0, end = 0;  // of the trace's nodes

  bool holds(std::uint32_t node) const { return begin <= node && node < end; }
};

struct FlowSteps {
  std::vector<FlowStep> steps;
  // Without marks, DataFlow's members of these names; 0 otherwise.
  std::uint32_t sequence_ops = 0;
  std::uint64_t sequence_hash = 0;
};
FlowSteps find_steps(const ExecutionTrace& trace);

}  // namespace purlin::profile::flow
