// SPDX-License-Identifier: Apache-2.0
// Lists: the two short lists of kernels, what to tune and what got slower, and the alerts. Pure
// functions over facts; they cannot fail.
#pragma once

#include "analyze/advise/facts.h"

namespace purlin::analyze {

// Advice::tune by what the distance to the target costs, and ::slower with a profile to compare.
void add_lists(const Facts& facts, const AdviceOptions& options, Advice& advice);
// After the interventions and the levels: thresholds that the profile exceeds.
void add_alerts(const Facts& facts, Advice& advice);

}  // namespace purlin::analyze
