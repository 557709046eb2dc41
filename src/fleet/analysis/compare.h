// SPDX-License-Identifier: Apache-2.0
// Compare: two builds, weeks or drivers, kernel by kernel, with the mix of shapes held fixed.
//
// A replicate is a node. Nodes that have both sides are compared with themselves (exact signed-rank
// test); else the nodes of one side with those of the other (rank-sum test by permutation). All
// kernels share the level (Holm). A kernel whose records are too thin is refused with the reason.
// Pure, deterministic, safe on any thread. Cannot fail.
#pragma once

#include "fleet/analysis/coverage.h"
#include "fleet/analysis/mix.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::fleet::analysis {

enum class Change { kSlower, kFaster, kSame, kOpen, kRefused };
std::string_view to_text(Change change);  // "slower", "faster", "same", "open", "refused"

struct KernelComparison {
  KernelKey key;
  std::string role;
  Change change = Change::kRefused;
  std::string refused;  // why, and what would do; "" else
  // Time after / before, the mix fixed; the interval of 98 % or the confidence that few nodes give.
  double ratio = 1, low = 0, high = 0, confidence = 0;
  double p_value = 1;       // two-sided, before Holm's correction
  double mixed_ratio = 1;   // of the plain p50s: what the change looks like without a fixed mix
  double common_share = 0;  // of the GPU time of the side with less in common strata
  int nodes_before = 0, nodes_after = 0, nodes_paired = 0;
  bool paired = false;
  double launches_before = 0, launches_after = 0, gpu_s_before = 0, gpu_s_after = 0;
};

struct CompareOptions {
  Needs needs;
  double alpha = 0.01;          // for all kernels together
  double min_magnitude = 0.02;  // a smaller difference is "same" or "open"
};

struct Comparison {
  std::optional<std::string> refused;     // the whole of it
  std::vector<KernelComparison> kernels;  // largest GPU time first
};
// The cells of each side, and the coverage of both; a coverage without cells is not judged.
Comparison compare(const std::vector<Cell>& before, const std::vector<Cell>& after,
                   const std::vector<CoverageCell>& coverage, const CompareOptions& options);

// Which of the p-values are significant at a family-wise level, in the order given (Holm).
std::vector<bool> holm(const std::vector<double>& p_values, double alpha);

}  // namespace purlin::fleet::analysis
