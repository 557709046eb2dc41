// SPDX-License-Identifier: Apache-2.0
// SlowOp: a framework's operator whose own work on the host takes milliseconds in every step, so
// that its launches come late. A library that makes a plan or searches an algorithm for each new
// shape does so; cuDNN's attention in a loop over tokens took 40 ms of a step of 50 ms.
//
// Pure function, safe on any thread. Cannot fail.
#pragma once

#include "analyze/timeline/intervals.h"
#include "model/profile/timeline.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace purlin::analyze {

struct SlowOp {
  std::string name;            // of the operator
  std::uint32_t process = 0;   // index into Profile::processes
  double own_ns = 0;           // in all slow instances: less inner operators and API calls
  double instances = 0;        // the slow ones
  double others = 0;           // instances of the operator that are not slow
  std::vector<Interval> when;  // the slow instances, in order and disjoint
};

// The operator with most such time; nothing where fewer than `least_instances` are slow.
std::optional<SlowOp> find_slow_op(const Timeline& timeline, double least_instances);

}  // namespace purlin::analyze
