// SPDX-License-Identifier: Apache-2.0
// What if: what each resource doubled would save on the roofline, and what another GPU, more GPUs
// or less data would. Pure functions over facts; an answer that the profile does not give is left
// out.
#pragma once

#include "analyze/advise/facts.h"

namespace purlin::analyze {

// Each resource doubled into Advice::what_if; what would not help a kernel into Advice::no_gain.
void add_no_gain(const Facts& facts, Advice& advice);
// Other devices and less data, into Advice::what_if (hardware.cc).
void add_hardware(const Facts& facts, const AdviceOptions& options, Advice& advice);

}  // namespace purlin::analyze
