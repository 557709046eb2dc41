// SPDX-License-Identifier: Apache-2.0
// Savings: what each intervention saves of one unit, end to end. By replay where its rule says what
// changes and the host's calls are known, else by the rule's own arithmetic over kernels. Pure
// functions over facts; they cannot fail.
#pragma once

#include "analyze/advise/facts.h"

#include <cstddef>
#include <vector>

namespace purlin::analyze {

// Sets each saving, its share and how it was estimated. Where the estimate is not the replay's,
// saved_ns is what the rule put there.
void add_savings(const Facts& facts, std::vector<Intervention>& interventions);
// Removes what saves less than the difference between steps; returns how many.
std::size_t drop_below_spread(const Facts& facts, std::vector<Intervention>& interventions);
// How well the unchanged replay meets the recording, and the critical path of one unit.
void add_replay(const Facts& facts, Advice& advice);
std::vector<CriticalWork> name_critical_path(const Facts& facts, const Replayed& replayed);

}  // namespace purlin::analyze
