// SPDX-License-Identifier: Apache-2.0
// Smooth: a Gaussian process over the configs of a cold search.
//
// It learns from fewer results than trees, because like configs have like times. Its next config is
// the one with the highest expected improvement, times the probability that it works. A failed
// config has no time, so the process does not see it: a fast config may stand next to it. Slow
// times all count alike, because the task is to tell the fast configs apart. A gain counts from 2 %
// on, else near copies of the best config take half of the search. A pass grows with what it has
// seen, so it ends after some hundred results. Thread-safety: belongs to one thread. Never fails.
#pragma once

#include "base/random.h"
#include "tune/search/ledger.h"
#include "tune/search/transfer/candidates.h"
#include "tune/search/transfer/surrogate.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace purlin::tune {

class Smooth {
 public:
  // All outlive it.
  Smooth(const Space& space, Ledger& ledger, Random& random);

  // Every result, also of configs that others asked for.
  void add(std::size_t index, std::optional<double> time_ms);
  // The next config, taken; nullopt when it has no more to say. One that likely() named comes first
  // if it promises nearly as much: it is compiled.
  std::optional<std::size_t> ask();
  // The same, among these. nullopt also where none of them is left.
  std::optional<std::size_t> ask_among(const std::vector<std::size_t>& indices);
  // That one, not taken.
  std::optional<std::size_t> favourite(const std::vector<std::size_t>& indices) const;
  // What ask() would say next if every config came out as predicted; not taken.
  std::vector<std::size_t> likely(std::size_t count);

 private:
  struct Result {
    std::size_t candidate;
    double log_time;
  };

  std::optional<std::size_t> candidate(std::size_t index) const;
  // Of the configs that are neither known nor in `others`, by index.
  std::optional<std::size_t> most_promising(const std::vector<std::size_t>& others) const;
  std::optional<std::size_t> take(std::optional<std::size_t> candidate);
  double limit() const;
  double sought() const;
  void count_neighbours(std::size_t candidate, bool worked);
  double works(std::size_t candidate) const;
  double promise(std::size_t candidate) const;
  void refit();

  Ledger& ledger_;
  const TransferCandidates chosen_;
  Surrogate surrogate_;
  std::vector<Result> results_;         // of configs that worked
  std::vector<std::size_t> named_;      // candidates that were said to be likely
  std::vector<bool> expected_;          // by candidate
  std::vector<float> worked_, failed_;  // by candidate: results nearby, by likeness
  std::optional<double> best_;          // log of ms
  std::size_t next_refit_ = 0;          // number of results
};

}  // namespace purlin::tune
