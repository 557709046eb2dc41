// SPDX-License-Identifier: Apache-2.0
// Ranking: the order in which interventions are listed, by their saving and their effort, and which
// of them are one. The order in which to do them is plan.h. Pure functions over values; they cannot
// fail.
#pragma once

#include "analyze/advise/facts.h"

#include <vector>

namespace purlin::analyze {

// What a saving is worth for its work: days must save twice as much as hours, weeks four times. The
// alternative to another change comes after what saves other time.
double worth(const Intervention& one);
// Most worth first; what is worth as much, within a hundredth, by level.
void rank(std::vector<Intervention>& interventions);
// Reorders what rank() gave from the second place on: of a saving that the first ones take as well,
// a quarter counts. Without replay, nothing changes.
void rank_by_what_is_left(const Facts& facts, std::vector<Intervention>& interventions);
// Orders the trades, and gives each change its place: a trade stands before an intervention that is
// worth less than a quarter of it. What only takes time, for memory, is last.
void place_trades(Advice& advice);
// Alike interventions for problems of the same kernels become one (alike.cc).
void join_alike(std::vector<Intervention>& interventions);

}  // namespace purlin::analyze
