// SPDX-License-Identifier: Apache-2.0
// Finals: the fastest configs of a session, measured again in turns, and the choice among them.
//
// A search measures its configs minutes apart, while clocks and temperature drift, and the luckiest
// sample wins. In the finals each candidate is measured once per round, in rotating order, so that
// drift affects all alike. A clearly beaten candidate drops out. A config that the search gave up
// after one or two samples gets a second chance if it was close, because one sample may be
// disturbed. Where noise hides whether a candidate is faster than the default, more rounds follow.
// verdict.h chooses the winner, so that noise does not decide which config is stored.
#pragma once

#include "base/status.h"
#include "measure/timing.h"
#include "model/evaluation.h"
#include "tune/session/evaluator.h"
#include "tune/session/verdict.h"
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
  int more_rounds = 15;            // At most, of the default and its rivals, until they are apart.
  int samples = 5;                 // Of each candidate in each round.
  double tie_cap = 0.02;           // No tie is slower than the lowest median by more.
  Objective objective = Objective::kTime;
};

// Which evaluations cannot be among the finalists; empty: none.
using IsOut = std::function<bool(std::size_t evaluation)>;

// The finals one measurement at a time, for a caller that drives the device. Belongs to one
// thread; `space` and `evaluations` outlive it and do not change.
class Finals {
 public:
  // `again`: whether a second measurement tells anything new; a recording would say the same.
  Finals(const Space& space, const std::vector<Evaluation>& evaluations,
         std::optional<std::size_t> default_evaluation, const measure::Policy& policy,
         const FinalsOptions& options, bool again, const IsOut& is_out = {});
  // The evaluation to measure again, under policy(); nullopt when the rounds are over. Each is
  // reported before the next is asked for.
  std::optional<std::size_t> next();
  const measure::Policy& policy() const { return policy_; }
  // The round under way, from 1, and how many there are to be.
  int round() const { return rounds_ + 1; }
  int rounds() const;
  bool at_round_start() const { return !round_begun_; }
  // What one more round takes, in seconds, by what the search took for the same.
  double round_s() const;
  void report(const Evaluation& measured);
  // nullopt when no evaluation is ok. May be asked before the rounds are over: an unfinished round
  // does not count. kFailed when all failed when measured again.
  Result<std::optional<Verdicts>> verdict();

 private:
  std::size_t at_turn() const;
  void advance();
  void end_round();
  bool goes_on() const;
  bool sits_out(const Finalist& finalist) const;

  const Space& space_;
  const std::vector<Evaluation>& evaluations_;
  measure::Policy policy_;
  FinalsOptions options_;
  bool again_;
  std::vector<Finalist> finalists_;
  // By finalist, this round's included.
  std::vector<std::vector<Sample>> fresh_, fresh_values_, fresh_by_round_;
  int rounds_ = 0;        // made in full
  bool decided_ = false;  // more rounds would not change much
  bool open_ = false;     // tune::is_open, after the last full round
  std::size_t turn_ = 0;  // in the round under way
  bool round_begun_ = false;
  std::optional<std::size_t> out_;  // the finalist being measured
};

// What finals of these evaluations would take, in seconds: as many full rounds as fit `at_most_s`.
double finals_s(const std::vector<Evaluation>& evaluations,
                std::optional<std::size_t> default_evaluation, const FinalsOptions& options,
                double at_most_s, const IsOut& is_out = {});

// The evaluations that finals would measure, the fastest first.
std::vector<std::size_t> finalists_of(const std::vector<Evaluation>& evaluations,
                                      std::optional<std::size_t> default_evaluation,
                                      const FinalsOptions& options, const IsOut& is_out);

// All of it on one evaluator. `go_on` is asked before each measurement.
Result<std::optional<Verdicts>> hold_finals(const Space& space,
                                            const std::vector<Evaluation>& evaluations,
                                            std::optional<std::size_t> default_evaluation,
                                            Evaluator& evaluator, const measure::Policy& policy,
                                            const FinalsOptions& options,
                                            const std::function<bool()>& go_on);

}  // namespace purlin::tune
