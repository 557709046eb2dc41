// SPDX-License-Identifier: Apache-2.0
// Ranks: which device begins its collectives last. A collective ends on all devices at about the
// same moment, so ends tell the clocks' offsets and begins tell who kept the others waiting.
// Collectives are matched by name and order; devices that ran different numbers of one are not
// compared by it. Pure function.
#pragma once

#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/timeline.h"

#include <string>
#include <vector>

namespace purlin::analyze {

// Adds to `limits` where clocks do not agree. Nothing with fewer than two devices in common.
std::vector<RankStats> compare_ranks(const Profile& profile, const std::vector<DeviceWork>& devices,
                                     const std::vector<bool>& communication,
                                     std::vector<std::string>& limits);

}  // namespace purlin::analyze
