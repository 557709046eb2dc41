// SPDX-License-Identifier: Apache-2.0
// Splits the rows of kernels by the ops that their launches in the timeline got. A row of launches
// that the timeline has not is split in the proportion of those it has, so that the number of
// launches and their time stay. Pure functions over a profile; cannot fail.
#pragma once

#include "model/profile/profile.h"
#include "profile/import/hlo/launches.h"

#include <vector>

namespace purlin::profile {

// What a launch of the timeline got.
struct LaunchLabel {
  const hlo::Launch* launch = nullptr;
  bool shaped = false;  // does the op's work; false: its helper
};

// `labels`: by activity. The number of launches that got an op.
double split_rows(Profile& run, const std::vector<LaunchLabel>& labels);

}  // namespace purlin::profile
