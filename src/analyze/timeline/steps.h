// SPDX-License-Identifier: Apache-2.0
// Steps: the iterations of a program, and where their wall time went on one device. The breakdown
// is that of PyTorch's TensorBoard plugin, so its figures can be compared; where steps come from
// and how they are extended to the device is in docs/concepts/timeline.md, "Steps". Pure functions.
#pragma once

#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/timeline.h"

#include <string>
#include <vector>

namespace purlin::analyze {

struct Step {
  std::string name;
  Interval window;
};
struct Steps {
  std::string from;          // TimelineAnalysis::steps_from
  std::vector<Step> steps;   // in order, disjoint
  int cut = 0;               // steps left off at the end: their device work is not all here
  std::size_t launches = 0;  // of a guessed step, TimelineAnalysis::guess
  double kernel_share = 0;
};
// The steps that ranges of the host mark, as the host has them: not extended to the device, and one
// after each mark where two optimizers take turns. Empty where none do.
Steps host_steps(const Timeline& timeline, std::uint32_t process);
// `name_numbers`: number_names(profile).
Steps find_steps(const Profile& profile, const DeviceWork& work, std::uint32_t process,
                 const std::vector<std::uint32_t>& name_numbers);
// The number of leading steps that belong to the start-up: steps longer than 1.5 times the median,
// in one piece. At least two steps are left; of fewer than four none is warm-up. Nor is any where
// two later steps are about as long.
std::size_t count_warm_up(const std::vector<Step>& steps);

std::vector<StepTime> break_down(const Profile& profile, const DeviceWork& work,
                                 const std::vector<bool>& communication, std::uint32_t process,
                                 const Steps& steps);
StepTime mean_step(const std::vector<StepTime>& steps);

}  // namespace purlin::analyze
