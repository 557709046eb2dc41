// SPDX-License-Identifier: Apache-2.0
// Verdicts: the finalists of a session and the choice among them.
//
// The default config loses its place only to a config that is apart from it: their 99 % intervals
// of the median do not overlap, neither over all samples nor over the medians of the rounds.
// Samples of one round share the clock and the load of their moment, so many of them prove little
// alone. So several candidates, looked at several times, do not beat it by chance. Of the configs
// apart from the default, those that tie with the lowest median are equal, and the first in space
// order wins. Without a default, the same holds for all. Pure functions over their arguments.
// Thread-safety: all.
#pragma once

#include "measure/timing.h"
#include "model/evaluation.h"
#include "tune/space/space.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace purlin::tune {

// A candidate as it stands in the end.
struct Finalist {
  std::size_t evaluation = 0;    // Index into the session's evaluations.
  std::vector<Sample> samples;   // Of all rounds; of the search if there were no finals.
  double time_ms = 0;            // Their median.
  std::vector<Sample> values;    // Of the objective: the samples, or for energy one for each round.
  double value = 0;              // Their median, which decides.
  double searched = 0;           // Its value in the search; 0 = given up early.
  std::vector<Sample> by_round;  // The median of the values of each round; none of a recording.
  measure::Interval interval;    // 95 %, of that median.
  double energy_mj = 0, power_w = 0;  // Of the last round; 0 = not measured.
  bool is_default = false;
  std::string problem;         // failed in the finals, so it cannot win
  bool beaten = false;         // dropped out before the last round: fewer samples
  bool second_chance = false;  // given up early in the search

  // Whether the interval says more than the order of magnitude.
  bool is_known() const { return interval.high <= 2 * interval.low; }
  bool can_win() const { return problem.empty() && !beaten; }
};

struct Verdicts {
  std::vector<Finalist> finalists;      // fastest first, failed ones last
  std::size_t winner = 0;               // index into finalists
  std::vector<std::size_t> ties;        // others as good as the winner
  std::optional<std::size_t> fallback;  // the default config among the finalists
  int rounds = 0;                       // made in full
  // The times of the finals over those of the search, where the machine was in another state by
  // then; else 1. Times of two states do not compare, ratios within one do.
  double machine_change = 1;
  const Finalist& best() const { return finalists[winner]; }
};

// How much one machine's measurements of the same config differ, as shares of its time.
struct Unsteadiness {
  double rounds = 0;  // between rounds, of the finalist that changed most
  double search = 0;  // between search and finals, next to what all finalists have in common
};
Unsteadiness unsteadiness(const std::vector<Finalist>& finalists);

// Whether `fast` is faster than `slow` beyond what noise explains, on such a machine.
bool is_apart(const Finalist& fast, const Finalist& slow, const Unsteadiness& unsteady);

// Whether the fastest rival of the default is ahead of it by more than `tie_cap`, and more samples
// could show that they are apart.
bool is_open(const std::vector<Finalist>& finalists, double tie_cap);

// Sorts the finalists and fills in winner, ties and fallback.
void decide(Verdicts& verdict, const Space& space, const std::vector<Evaluation>& evaluations,
            double tie_cap);

// Verdicts::machine_change of finalists with their samples of the finals.
double machine_change(const std::vector<Finalist>& finalists,
                      const std::vector<Evaluation>& evaluations);

}  // namespace purlin::tune
