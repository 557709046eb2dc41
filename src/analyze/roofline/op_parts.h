// SPDX-License-Identifier: Apache-2.0
// Op parts: which part of its op's work one launch of a row does, where an op launches the same
// kernel several times. PyTorch's lists of tensors are too long for the arguments of one launch, so
// an update of many parameters is cut into launches of up to 320 blocks each.
//
// Pure function of the timeline, safe on any thread. Cannot fail.
#pragma once

#include "model/profile/profile.h"

#include <vector>

namespace purlin::analyze {

// Of each row of Profile::kernels: the mean share of a launch in its op, by blocks; 1 where no
// timeline tells, and for kernels that are not of that kind.
std::vector<double> parts_of_ops(const Profile& profile);

}  // namespace purlin::analyze
