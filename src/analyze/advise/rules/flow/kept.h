// SPDX-License-Identifier: Apache-2.0
// Kept: how a program keeps a result that it would compute again, by the op that makes the result
// or an op around that: a weight as a parameter, a table as a buffer. Pure functions over a walk.
#pragma once

#include "analyze/advise/rules/flow/launches.h"

#include <string>
#include <vector>

namespace purlin::analyze {

// Ways to keep these results, those that save most time first. `in_step`: a later step may not have
// them. Empty where no way is known.
std::vector<std::string> ways_to_keep(const Walk& walk, const FlowWorks& works, bool in_step);

}  // namespace purlin::analyze
