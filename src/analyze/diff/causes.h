// SPDX-License-Identifier: Apache-2.0
// How much of an item's change is due to what. Private to analyze/diff. A pure function.
#pragma once

#include "analyze/diff/diff.h"

namespace purlin::analyze {

// Fills change, causes, interval and why of an item whose sides and match are known.
// `memory_bound`: the SMs' clock does not explain a change of its duration.
void attribute(DiffItem& item, const Diff& diff, bool memory_bound);

}  // namespace purlin::analyze
