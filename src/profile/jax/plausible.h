// SPDX-License-Identifier: Apache-2.0
// Plausible: whether a kernel of the run can be a launch of an XLA program. Its name says types,
// and in its time the device can compute and move only so much. Pure function over values. What is
// not known of kernel or device does not speak against it.
#pragma once

#include "model/profile/profile.h"
#include "profile/import/hlo/launches.h"

namespace purlin::profile {

// `ns`: the mean duration of the kernel's launches.
bool is_plausible(const Environment& environment, const KernelRow& row, const hlo::Launch& launch,
                  double ns);

}  // namespace purlin::profile
