// SPDX-License-Identifier: Apache-2.0
// Unknown roofs: own kernels that take much of the time though their distance to their roof is not
// known. The advice names what would tell it. Pure functions over facts; they cannot fail.
#pragma once

#include "analyze/advise/facts.h"

namespace purlin::analyze {

// After the interventions are listed: those that speak of a kernel spare it an entry.
void add_unknown_roofs(const Facts& facts, Advice& advice);
bool has_hardware_counters(const KernelStat& kernel);  // Kineto's figures are estimates

}  // namespace purlin::analyze
