// SPDX-License-Identifier: Apache-2.0
// Coverage notes of a fleet's profiles: many alike become one with their number. A pure function.
#pragma once

#include "model/profile/profile.h"

#include <vector>

namespace purlin::analyze {

// Notes of one cause with different texts stay separate up to a few. Beyond that, the first
// represents all of them.
std::vector<CoverageNote> group_notes(const std::vector<CoverageNote>& notes);

}  // namespace purlin::analyze
