// SPDX-License-Identifier: Apache-2.0
// `auto`: chooses a strategy by what is known, the budget and the space.
#include "tune/search/strategy.h"

#include <algorithm>

namespace purlin::tune {

// The model itself mixes exploration, climbing and chance, and has the highest mean score of the
// strategies on the recorded spaces (bench/results/search_score.md).
std::unique_ptr<Strategy> make_cold_auto(const StrategyRequest& request) {
  if (request.evaluations >= request.space.size()) return make_exhaustive(request);
  return make_model(request);
}

std::unique_ptr<Strategy> make_auto(const StrategyRequest& request) {
  const bool known = std::any_of(request.priors.begin(), request.priors.end(),
                                 [](const PriorRun& run) { return !run.times.empty(); });
  return known ? make_transfer(request) : make_cold_auto(request);
}

}  // namespace purlin::tune
