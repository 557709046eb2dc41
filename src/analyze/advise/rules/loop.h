// SPDX-License-Identifier: Apache-2.0
// Loop: launches that come round several times within one step: a loop over items, layers or points
// of time. Waits of the host do not end it. Pure functions over the facts.
#pragma once

#include "analyze/advise/rules/walk.h"

#include <cstddef>
#include <vector>

namespace purlin::analyze {

struct Loop {  // in one step
  Launches launches;
  std::size_t period = 0;  // launches of a round
  double rounds() const {
    return static_cast<double>(launches.size()) / static_cast<double>(period);
  }
};

inline constexpr std::size_t kFewestRounds = 4;
// Rounds that repeat in a step can be done once, over a batch, or as one graph. Seven measured
// loops of 8 and more rounds kept 1 to 23 % of the step.
inline constexpr Interval3 kLoopLeft = {0.6, 0.2, 0.03};
inline constexpr double kShortKernel = 20'000;  // ns. Longer ones take their time in a batch too.

// Of all steps. Kernels of one round are equal by name and problem shape.
std::vector<Loop> find_loops(const Facts& facts);

// The share of the launches that is in loops of short kernels, their rounds in the mean, and the
// launches of all rounds but the first.
struct LoopShare {
  double launches = 0, rounds = 0;
  Launches again;
};
LoopShare share_of_loops(const Facts& facts, double fewest_rounds);

// Whether no round reads what an earlier one has written, as far as sizes tell.
bool rounds_are_independent(const Walk& walk, const Loop& loop);

}  // namespace purlin::analyze
