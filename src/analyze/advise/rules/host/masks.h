// SPDX-License-Identifier: Apache-2.0
// Masks: loops that choose elements by a mask, group by group. The host waits in each round for the
// number of chosen elements. All rounds can be one op over all elements. Their sizes differ, so
// loop.h does not find them. Pure functions over a sorted profile. Without recorded ops nothing is
// found.
#pragma once

#include "analyze/advise/rules/host/host_view.h"
#include "analyze/timeline/intervals.h"

#include <vector>

namespace purlin::analyze {

struct MaskLoops {
  std::vector<Interval> when;  // of the host, in order and disjoint
  double masks = 0;            // in all of them; 0: there is no such loop
};
MaskLoops find_mask_loops(const HostView& view);
// Adds to the change what goes with the loops, and its evidence.
void replace_mask_loops(const HostView& view, MaskLoops loops, Intervention& out);

}  // namespace purlin::analyze
