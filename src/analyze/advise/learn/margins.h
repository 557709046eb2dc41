// SPDX-License-Identifier: Apache-2.0
// Margins: how the models of a kind of rule missed measured pairs. Each interval is corrected by
// its kind's margin, so that 95 % of the pairs that were seen lie inside: conformal quantiles,
// checked by leaving out one set of pairs at a time (bench/advice_pairs/margins.py). A user's own
// outcomes replace them (outcome.h). Pure functions.
#pragma once

#include "analyze/replay/scenario.h"

#include <string_view>

namespace purlin::analyze {

struct Margin {
  double kept = 1;              // of the distance from the middle to a low end above 0
  double below = 0, above = 0;  // shares of the step
};
Margin margin_of(std::string_view rule);

// `share` with the margin, and the time it means where a step takes `step_ns`. What cannot lose
// stays at 0 and above; nothing saves more than all.
void widen(const Margin& margin, double step_ns, Interval3& share, Interval3& ns);

}  // namespace purlin::analyze
