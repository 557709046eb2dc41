// SPDX-License-Identifier: Apache-2.0
// The community score of a search on a recorded space (Willemsen et al., "A methodology for
// comparing optimization algorithms for auto-tuning", doi 10.1016/j.future.2024.05.021, in its form
// for budgets of time): how far below the expected curve of random search the strategy's best value
// stays, as a share of the way to the optimum, averaged over a budget that ends when random search
// is expected to have gone 95 % of the way from the median to the optimum.
//
// 0 is as good as random search, 1 has the optimum from the start; worse than random is negative.
// docs/concepts/search.md has the definition. Thread-safety: immutable once made.
#pragma once

#include "gpu/replay/replay_space.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace purlin::bench {

// What one evaluation of a search showed, in the order made.
struct Trial {
  std::optional<double> value;  // nullopt: it failed
  double cost_s = 0;
};

class CommunityScore {
 public:
  static constexpr double kFirst = 0.01, kLast = 0.95;  // the ends of the budget
  static constexpr double kMargin = 1.1;                // runs go on for this much longer
  static constexpr std::size_t kPoints = 10'000;

  // Of every config of the space. kInvalid when fewer than two configs work.
  static Result<CommunityScore> of(const std::vector<Trial>& space);
  static Result<CommunityScore> of(const gpu::ReplaySpace& recording);

  // From now on the budget is that of 1 to so many evaluations of the median cost, for sessions
  // that are shorter than the community's.
  void limit_to(std::size_t evaluations) { limit_ = evaluations; }
  bool limited() const { return limit_ > 0; }
  std::size_t limit() const { return limit_; }

  double optimum() const { return values_.front(); }
  // After how many draws random search is expected to be this share of the way from the median to
  // the optimum, and how long they take.
  std::size_t cutoff_evaluations(double share) const;
  double cutoff_s(double share) const;
  double run_s() const { return kMargin * cutoff_s(kLast); }  // how long a run should be
  // Number of configs that are faster.
  std::size_t rank(double value) const;

  // The score at kPoints instants of the budget, of repeats of one search. A point of a repeat is
  // the true value of the config it holds for the best so far.
  std::vector<double> curve(const std::vector<std::vector<Trial>>& repeats) const;
  static double mean(const std::vector<double>& curve);

 private:
  std::vector<double> baseline(const std::vector<double>& instants) const;

  std::vector<double> values_;  // of configs that work, ascending
  double median_cost_s_ = 0, mean_cost_s_ = 0;
  std::size_t limit_ = 0;
};

// The mean time of a recorded config; nullopt when it failed.
std::optional<double> true_value(const gpu::RecordedRun& run);

}  // namespace purlin::bench
