// SPDX-License-Identifier: Apache-2.0
// Verdict: at which level most of the time is lost: the schedule, the kernels' tuning, the
// algorithm, the hardware. It needs the ranked interventions. Pure function; it cannot fail.
#pragma once

#include "analyze/advise/facts.h"

namespace purlin::analyze {

// Sets the levels' shares, the verdict and its sentence.
void judge_level(const Facts& facts, Advice& advice);

}  // namespace purlin::analyze
