// SPDX-License-Identifier: Apache-2.0
// Stalls: why the warps of a kernel wait, from sampled program counters or from Nsight Compute's
// stall counters, and what that means. Also why more occupancy would not help, where it would not.
// Pure functions.
#pragma once

#include "analyze/roofline/counters.h"
#include "analyze/stalls/sites.h"
#include "model/profile/profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

// A stall is worth a word from these shares on: of the stalled samples, and of all.
inline constexpr double kStallOfStalled = 0.30, kStallOfAll = 0.10;

struct StallReason {
  std::string name;     // "long_scoreboard"
  std::string meaning;  // "a load from global or local memory"; "" if not documented
  double samples = 0;   // or warps per issue, where that was counted

  double share = 0;    // of all samples
  double stalled = 0;  // of the samples that are stalls; 0 for warps that issued or were eligible
  std::string remedy;  // id of what helps, "" where none is known
};

struct StallTable {
  std::vector<StallReason> reasons;  // most first, none without samples
  double samples = 0;
  bool sampled = false;  // program counters were sampled; else counters of warp states
  bool empty() const { return reasons.empty(); }
  // Those above both thresholds.
  std::vector<const StallReason*> findings() const;
};
StallTable read_stalls(const std::vector<Counter>& counters);
// Samples of Purlin's own go before counters.
StallTable read_stalls(const std::vector<Counter>& counters, const StallSites& sampled);

// "" where more warps might help, or nothing tells.
std::string why_occupancy_does_not_help(const StallTable& stalls, const CounterFigures& figures,
                                        double occupancy);

}  // namespace purlin::analyze
