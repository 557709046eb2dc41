// SPDX-License-Identifier: Apache-2.0
// Ranking: the one order of a session's configs, for text, page and JSON, and the one notion of a
// config's time: that of the finals where it was in them, else that of the search.
//
// The winner is first, then the other finalists, then the rest. Times of the search and of the
// finals do not compare on a device that drifts. Configs that failed have no rank. Pure functions;
// the result points into `session`. Thread-safety: all.
#pragma once

#include "tune/session/session.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace purlin::tune {

struct RankedConfig {
  std::size_t evaluation = 0;          // index into the session's evaluations
  const Finalist* finalist = nullptr;  // nullptr: not in the finals
  double time_ms = 0, value = 0;       // the time; of the objective
  bool is_tie = false;                 // as good as the winner
};

// Empty where nothing worked.
std::vector<RankedConfig> ranking(const SessionResult& session, Objective objective);

// The slowest config over the winner, by the search's times, which compare with each other.
double worst_over_best(const SessionResult& session);

// "2.10x faster than the default", or that no config is.
std::string claim_text(const Verdicts& verdict);

}  // namespace purlin::tune
