// SPDX-License-Identifier: Apache-2.0
// Coverage: how much of the fleet's GPU time the records show, and whether that suffices for a
// conclusion. A refusal states what is missing and how much would do.
//
// Pure functions over plain types, safe on any thread. Cannot fail.
#pragma once

#include "fleet/analysis/cells.h"

#include <optional>
#include <string>
#include <vector>

namespace purlin::fleet::analysis {

struct Coverage {
  int nodes = 0, devices = 0;
  double busy_ns = 0, seen_ns = 0, overhead_ns = 0;
  double launches_seen = 0, launches_lost = 0, bad_timestamps = 0;
  std::vector<std::string> why;  // distinct reasons of what is missing, most GPU time first

  // Shares of 0 to 1; none where nothing was busy or launched.
  std::optional<double> seen_share() const;
  std::optional<double> lost_share() const;
};
Coverage summarise(const std::vector<CoverageCell>& cells);

struct Needs {
  double launches = 200;      // on each side
  int nodes = 5;              // with a kernel
  double common_share = 0.5;  // of each side's GPU time, in strata that both sides have
  double seen_share = 0.05;   // of the busy time; weights undo the sampling
  double lost_share = 0.05;   // at most
  double cell_launches = 10;  // of a cell, for its p50 to count
};

// The reason to refuse; none: conclude.
std::optional<std::string> too_thin(const Coverage& coverage, const Needs& needs);

// The nodes whose coverage is too thin, with the reason; sorted.
struct ThinNode {
  std::string node, why;
};
std::vector<ThinNode> thin_nodes(const std::vector<CoverageCell>& cells, const Needs& needs);

}  // namespace purlin::fleet::analysis
