// SPDX-License-Identifier: Apache-2.0
// A device's time: unions, overlaps, idle causes, longest gaps and overview of one device over one
// window, from one sweep. Pure function.
#pragma once

#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/timeline.h"

#include <string>
#include <vector>

namespace purlin::analyze {

// What the environment calls a device: "cuda:1", "rank 1 (cuda:0)" where its process has a rank.
std::string device_label(const Profile& profile, int device, int rank = -1);

// The process that did most of a device's work.
std::uint32_t main_process(const Timeline& timeline, const DeviceWork& work);

// Adds to `gaps` the longest of this device, unordered, and to `all_idle` every one in order.
// `others`: find_other_work, in no figure but its own. `one_off`: find_one_off_gaps of the rest.
DeviceTime measure_device(const Profile& profile, const DeviceWork& work,
                          const std::vector<bool>& communication, const HostFacts& host,
                          Interval window, const std::vector<Interval>& others,
                          const std::vector<Interval>& one_off, std::vector<Gap>& gaps,
                          std::vector<IdleInterval>& all_idle,
                          TimelineAnalysis::Overview& overview);

}  // namespace purlin::analyze
