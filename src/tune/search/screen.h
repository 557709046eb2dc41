// SPDX-License-Identifier: Apache-2.0
// Screen: picks the more promising of some random configs from very few results, too few for a
// model.
//
// The expectation of a config is the mean log time of the results, weighted by likeness and pulled
// to the mean of all. Only random configs are compared, so that no copy of the best result is
// chosen: with five results, its neighbours are worth no more than a draw. Thread-safety: belongs
// to one thread. Never fails.
#pragma once

#include "base/random.h"
#include "tune/search/ledger.h"
#include "tune/search/places.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace purlin::tune {

class Screen {
 public:
  Screen(const Space& space, std::size_t among) : space_(space), places_(space), among_(among) {}

  void add(std::size_t index, std::optional<double> time_ms);
  // A config that the ledger does not know, and taken.
  std::optional<std::size_t> draw(Ledger& ledger, Random& random) const;

 private:
  struct Seen {
    std::vector<float> place;
    std::optional<float> log_time;
  };
  float expected(std::size_t index) const;

  const Space& space_;
  Places places_;
  std::size_t among_;
  std::vector<Seen> seen_;
};

}  // namespace purlin::tune
