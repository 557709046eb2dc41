// SPDX-License-Identifier: Apache-2.0
// ReadWhole: whether a later launch of the step reads all of a result of which the next reader
// takes a part, as far as sizes tell. Rules that would compute the part alone ask it. Pure
// functions over a walk.
#pragma once

#include "analyze/advise/rules/walk.h"

#include <cstddef>

namespace purlin::analyze {

// Whether a launch after `at` takes an array of as many elements. The search ends with the step,
// with the backward pass, and at a launch that makes another array of the size.
bool read_whole_after(const Walk& walk, const Launches& run, std::size_t at, double elements);

}  // namespace purlin::analyze
