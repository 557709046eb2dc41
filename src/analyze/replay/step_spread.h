// SPDX-License-Identifier: Apache-2.0
// StepSpread: how far a saving, as a share, may be off because it was seen in a few steps only. A
// bootstrap over the steps of the window, with fixed draws. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace purlin::analyze {

struct StepSpread {  // from the saving over all steps to the 10th and the 90th percentile of the
                     // draws
  double below = 0, above = 0;
};
// `nodes`: the last work of each step, in order; the times of all nodes before and after a change.
// Zero with fewer than four steps.
StepSpread spread_over_steps(const std::vector<std::uint32_t>& nodes,
                             const std::vector<double>& before, const std::vector<double>& after);

}  // namespace purlin::analyze
