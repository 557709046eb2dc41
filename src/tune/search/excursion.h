// SPDX-License-Identifier: Apache-2.0
// Excursions: the way out of a basin. Short searches among the configs that have one forced value,
// another than that of the fastest config.
//
// A model that has seen mostly one half of a space says little about the other half: all its times
// are slow next to the best, so they look alike. An excursion therefore has a separate model, of
// the results with its value only, and goes on while that half gets faster. The value is chosen at
// random. Parameters with few values come first, and values with few excursions without a gain.
// Thread-safety: belongs to one thread. Never fails.
#pragma once

#include "base/random.h"
#include "tune/model/ensemble.h"
#include "tune/search/ledger.h"
#include "tune/space/space.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace purlin::tune {

class Excursions {
 public:
  // All outlive it.
  Excursions(const Space& space, Ledger& ledger, Random& random, FitRegressor fit)
      : space_(space), ledger_(ledger), random_(random), fit_(std::move(fit)) {}

  // Every result, also of configs that others asked for.
  void add(std::size_t index, std::optional<double> time_ms);
  // The next config, taken; nullopt when there is none. `pool`: configs to choose among.
  std::optional<std::size_t> ask(std::size_t best, const std::vector<std::size_t>& pool);

 private:
  using Forced = std::pair<std::size_t, std::uint16_t>;  // parameter, value
  struct Result {
    std::size_t index;
    std::optional<double> time_ms;
  };

  bool has(std::size_t index, const Forced& forced) const;
  std::optional<Forced> choose(std::size_t best);
  bool begin(std::size_t best, const std::vector<std::size_t>& pool);
  void learn(const Result& result);
  std::optional<std::size_t> draw();
  std::optional<std::size_t> expected_best();

  const Space& space_;
  Ledger& ledger_;
  Random& random_;
  FitRegressor fit_;
  std::vector<Result> results_;
  std::map<Forced, std::size_t> visits_;  // without a gain
  // Of the present excursion.
  std::optional<Forced> forced_;
  std::vector<std::size_t> pool_;
  std::vector<std::uint8_t> rows_;
  std::optional<Ensemble> ensemble_;
  std::optional<double> best_ms_;
  std::size_t idle_ = 0;  // configs since it got faster
  bool gained_ = false;   // it got faster at all
};

}  // namespace purlin::tune
