// SPDX-License-Identifier: Apache-2.0
// Checklist: the workflow with automatic ticks: what the profile was checked for, what was found,
// and what could not be checked for lack of data. It comes last, for it reads the whole advice.
// Pure function; it cannot fail.
#pragma once

#include "analyze/advise/facts.h"

namespace purlin::analyze {

void add_checklist(const Facts& facts, Advice& advice);

}  // namespace purlin::analyze
