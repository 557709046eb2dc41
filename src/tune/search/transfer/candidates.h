// SPDX-License-Identifier: Apache-2.0
// The configs that a transfer considers, with what other runs say about each.
//
// All of a space that is small enough; of a larger one the runs' fastest configs, what is one step
// away from the very fastest, and a uniform sample. Thread-safety: value types.
#pragma once

#include "base/random.h"
#include "tune/search/prior.h"
#include "tune/search/transfer/surrogate.h"
#include "tune/space/space.h"

#include <cstddef>
#include <vector>

namespace purlin::tune {

// A config this many nats (a factor of e^1.5 = 4.5) slower than the best is as bad as one that
// fails: how bad the bad ones are says little about where the good ones are.
constexpr double kSlowest = 1.5;

struct TransferCandidates {
  std::vector<std::size_t> indices;  // of the space, ascending
  std::vector<std::size_t> uniform;  // those of them that are a fair sample of the space
  Candidates known;                  // by position in `indices`
};

// Without usable priors, `known` has no runs.
TransferCandidates transfer_candidates(const Space& space, const std::vector<PriorRun>& priors,
                                       Random& random, std::size_t at_most = 32768);

}  // namespace purlin::tune
