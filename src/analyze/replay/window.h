// SPDX-License-Identifier: Apache-2.0
// The part of a timeline that is replayed: successive steps of the steady state, the first left
// out; without steps, all of it. One or two long steps are left out; three are the program's usual
// work. Pure functions.
#pragma once

#include "analyze/timeline/intervals.h"
#include "analyze/timeline/timeline.h"
#include "model/profile/profile.h"

#include <cstdint>
#include <vector>

namespace purlin::analyze {

struct ReplayWindow {
  Interval time;
  double steps = 1;
  double long_steps = 0;                // Left out: they take more than twice the median.
  std::vector<std::int64_t> step_ends;  // In order; empty without steps.
  // How much the steps differ: half the distance of their quartiles, of their median. 0: not known.
  double spread = 0;
};
ReplayWindow choose_window(const Profile& profile, const TimelineAnalysis& timeline);

}  // namespace purlin::analyze
