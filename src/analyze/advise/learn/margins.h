// SPDX-License-Identifier: Apache-2.0
// Margins: by how much the models of a kind of rule missed measured pairs, beyond their own
// intervals. Each interval is widened by its kind's margin, so that 85 % of the pairs that were
// seen lie inside: conformal quantiles (bench/advice_pairs/margins.py). A user's own outcomes
// replace them (outcome.h). Pure functions.
#pragma once

#include "analyze/replay/scenario.h"

#include <string_view>

namespace purlin::analyze {

struct Margin {  // shares of the step
  double below = 0, above = 0;
};
Margin margin_of(std::string_view rule);

// `share` with the margin, and the time it means where a step takes `step_ns`. What cannot lose
// stays at 0 and above; nothing saves more than all.
void widen(const Margin& margin, double step_ns, Interval3& share, Interval3& ns);

}  // namespace purlin::analyze
