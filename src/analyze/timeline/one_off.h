// SPDX-License-Identifier: Apache-2.0
// One-off gaps: idle times of a device that say nothing about its usual work, such as a checkpoint,
// an evaluation, or a pause of the program. measure_device counts none that are mostly the
// recording tool's own. Pure functions.
#pragma once

#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/intervals.h"
#include "model/profile/profile.h"

#include <cstddef>
#include <vector>

namespace purlin::analyze {

// Idle intervals of `work` inside `parts` of a window, in order: longer than 20 times the median
// gap, and fewer of about that length than three, or than half of the steps. Empty where they are
// less than 1 % of the parts together, and with fewer than 20 gaps.
std::vector<Interval> find_one_off_gaps(const Timeline& timeline, const DeviceWork& work,
                                        const std::vector<Interval>& parts, std::size_t steps);

}  // namespace purlin::analyze
