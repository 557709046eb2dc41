// SPDX-License-Identifier: Apache-2.0
// ModelOptions: the constants of the model-guided search that a comparison may vary.
//
// The defaults are the product's. They were chosen by leaving one kernel out
// (bench_search_score --set-aside). Thread-safety: value type.
#pragma once

#include <cstddef>

namespace purlin::tune {

struct ModelOptions {
  // Below so many evaluations there is no model: a few points say nothing that it could learn.
  // Every config is then the most promising of so many random ones, by the results of like configs.
  double least_modelled = 10;
  std::size_t screened = 8;
  // Configs drawn before the first fit: a share of what the budget allows, within bounds.
  double first_share = 0.1, first_low = 5, first_high = 24;
  // Without a better config for so many results, or for this share of all results, the search has
  // stagnated.
  std::size_t patience_low = 20;
  double patience_share = 0.2;
  // The share of configs with forced values while the search stagnates.
  double forced = 0.5;
  // A budget of at most so many evaluations leaves the proposals to a Gaussian process (smooth.h),
  // which learns from fewer results than the trees. 0: never.
  std::size_t few_evaluations = 100;
};

}  // namespace purlin::tune
