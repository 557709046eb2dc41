// SPDX-License-Identifier: Apache-2.0
// `auto`: chooses a strategy by what is known, the budget and the space.
#include "tune/search/strategy.h"

#include <algorithm>

namespace purlin::tune {

// On the recorded spaces the model, which itself mixes exploration, climbing and chance, is ahead
// of every other strategy from some 20 evaluations on, and level with random search before
// (bench/results/search_score.md).
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
