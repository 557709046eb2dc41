// SPDX-License-Identifier: Apache-2.0
// Which units of a step matter, and how much of their results is read.
//
// A unit matters where it changes memory from before the step, gives a value to the host, is of
// another library, or where a unit that matters reads its result. All units of later steps matter.
// A result in memory that was not given back before the trace ended matters too: the program may
// hold it. Gradients are the exception: where others are read, an optimizer has run. Where the
// backward pass matters, the ops that it differentiates matter too. Pure functions.
#pragma once

#include "profile/import/flow/steps.h"
#include "profile/import/flow/units.h"

#include <cstdint>
#include <vector>

namespace purlin::profile::flow {

struct UnitUse {
  bool matters = false;
  // Of the result, by units that matter: 1 where that is all of it or is not known.
  double share = 1;
  std::uint32_t reader = kNoIndex;  // unit: the one that reads most
};

// Of the units of `step`, from units' index `first` on.
struct StepUse {
  std::uint32_t first = 0;
  std::vector<UnitUse> units;
};

StepUse find_use(const ExecutionTrace& trace, const Units& units, const FlowStep& step);

}  // namespace purlin::profile::flow
