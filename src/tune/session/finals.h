// SPDX-License-Identifier: Apache-2.0
// Finals: the fastest configs of a session, measured again in turns, and the choice among them.
//
// A search measures its configs minutes apart, while clocks and temperature drift, and the luckiest
// sample wins. In the finals each candidate is measured once per round, in rotating order, so that
// drift affects all alike. A clearly beaten candidate drops out. A config that the search gave up
// after one or two samples gets a second chance if it was close, because one sample may be
// disturbed. The winner has the lowest median over all rounds. Candidates are ties when their 95 %
// intervals of the median overlap the lowest, within a cap. Of the ties the default config wins,
// else the first in space order, so that noise does not decide which config is stored.
#pragma once

#include "base/status.h"
#include "measure/timing.h"
#include "model/evaluation.h"
#include "tune/session/evaluator.h"
#include "tune/space/space.h"

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace purlin::tune {

struct FinalsOptions {
  std::size_t candidates = 5;
  std::size_t at_least = 3;        // The fastest so many, at any distance.
  double within = 0.10;            // Of the best median, by their fastest sample.
  std::size_t second_chances = 8;  // How many of those given up early are looked at again.
  double chance_within = 0.35;     // Of the best median.
  int rounds = 5;                  // 0 = no finals: the search's own measurements decide.
  int samples = 5;                 // Of each candidate in each round.
  double tie_cap = 0.02;           // No tie is slower than the lowest median by more.
  Objective objective = Objective::kTime;
};

// A candidate as it stands in the end.
struct Finalist {
  std::size_t evaluation = 0;   // Index into the session's evaluations.
  std::vector<Sample> samples;  // Of all rounds; of the search if there were no finals.
  double time_ms = 0;           // Their median.
  std::vector<Sample> values;   // Of the objective: the samples, or for energy one for each round.
  double value = 0;             // Their median, which decides.
  measure::Interval interval;   // 95 %, of that median.
  double energy_mj = 0, power_w = 0;  // Of the last round; 0 = not measured.
  bool is_default = false;
  std::string problem;         // failed in the finals, so it cannot win
  bool beaten = false;         // dropped out before the last round: fewer samples
  bool second_chance = false;  // given up early in the search
};

struct Verdicts {
  std::vector<Finalist> finalists;      // fastest first, failed ones last
  std::size_t winner = 0;               // index into finalists
  std::vector<std::size_t> ties;        // others as good as the winner
  std::optional<std::size_t> fallback;  // the default config among the finalists
  int rounds = 0;                       // made in full
  const Finalist& best() const { return finalists[winner]; }
};

// The finals one measurement at a time, for a caller that drives the device. Belongs to one
// thread; `space` and `evaluations` outlive it and do not change.
class Finals {
 public:
  // `again`: whether a second measurement tells anything new; a recording would say the same.
  Finals(const Space& space, const std::vector<Evaluation>& evaluations,
         std::optional<std::size_t> default_evaluation, const measure::Policy& policy,
         const FinalsOptions& options, bool again);
  // The evaluation to measure again, under policy(); nullopt when the rounds are over. Each is
  // reported before the next is asked for.
  std::optional<std::size_t> next();
  const measure::Policy& policy() const { return policy_; }
  void report(const Evaluation& measured);
  // nullopt when no evaluation is ok. May be asked before the rounds are over: an unfinished round
  // does not count. kFailed when all failed when measured again.
  Result<std::optional<Verdicts>> verdict();

 private:
  void end_round();

  const Space& space_;
  const std::vector<Evaluation>& evaluations_;
  measure::Policy policy_;
  FinalsOptions options_;
  bool again_;
  std::vector<Finalist> finalists_;
  // By finalist, this round's included.
  std::vector<std::vector<Sample>> fresh_, fresh_values_;
  int rounds_ = 0;                  // made in full
  bool decided_ = false;            // more rounds would not change much
  std::size_t turn_ = 0;            // in the round under way
  std::optional<std::size_t> out_;  // the finalist being measured
};

// All of it on one evaluator. `go_on` is asked before each measurement.
Result<std::optional<Verdicts>> hold_finals(const Space& space,
                                            const std::vector<Evaluation>& evaluations,
                                            std::optional<std::size_t> default_evaluation,
                                            Evaluator& evaluator, const measure::Policy& policy,
                                            const FinalsOptions& options,
                                            const std::function<bool()>& go_on);

}  // namespace purlin::tune
