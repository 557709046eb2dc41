// SPDX-License-Identifier: Apache-2.0
// Recorded spaces for benchmarks of search: reading them, and playing a strategy on one.
// Thread-safety: what was read is immutable; play() may run on several threads at once. Failure: a
// file that is no space is left out, with a line on stderr.
#pragma once

#include "community_score.h"
#include "tune/search/strategy.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::bench {

inline constexpr std::array<std::size_t, 4> kCounts = {25, 50, 100, 200};

// A recorded space with its configs by index.
struct Recorded {
  std::string name;
  gpu::ReplaySpace recording;
  tune::Space space;
  CommunityScore score;
  std::vector<const gpu::RecordedRun*> runs;  // by index of the space
  std::vector<std::optional<double>> values;  // true ones
  std::vector<tune::PriorRun> priors;         // what strategies are told of other GPUs
};

// Those of the directory whose names contain `only`, by name.
std::vector<std::unique_ptr<Recorded>> read_all(const std::string& directory,
                                                const std::string& only);

struct Run {
  std::vector<Trial> trials;  // as CommunityScore::curve takes them
  std::size_t asked = 0;
  double step_s = 0, longest_s = 0;            // in the strategy: all steps, the longest
  std::array<double, kCounts.size()> share{};  // of the optimum's speed
  std::string transfer;                        // what became of the priors, and why
};
using MakeStrategy =
    std::function<std::unique_ptr<tune::Strategy>(const tune::StrategyRequest& request)>;
// Until both the community's budget and `least` evaluations are spent; the strategy knows of the
// former. `noisy`: each evaluation shows one random sample.
Run play(const Recorded& recorded, const MakeStrategy& make, std::uint64_t seed, bool noisy,
         std::size_t least);

// The community score of one strategy's repeats.
double score_of(const Recorded& recorded, const std::vector<Run>& runs);
// Its standard error, from the scores of four parts of the repeats; 0 = too few of them.
double error_of(const Recorded& recorded, const std::vector<Run>& runs);

}  // namespace purlin::bench
