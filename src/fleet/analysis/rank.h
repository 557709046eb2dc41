// SPDX-License-Identifier: Apache-2.0
// Rank: the kernels with the most GPU time of a selection, and those worth tuning.
//
// Pure functions over plain types, safe on any thread. Cannot fail.
#pragma once

#include "fleet/analysis/cells.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::fleet::analysis {

struct TopKernel {
  std::string kernel, role;
  double launches = 0, gpu_s = 0;
  double share = 0, cumulative_share = 0;  // of the selection's GPU time
  double p50_ns = 0, p95_ns = 0;
  int nodes = 0, shapes = 0;
};
struct RoleShare {
  std::string role;
  double gpu_s = 0, share = 0;
};
struct Top {
  double gpu_s = 0;
  std::vector<TopKernel> kernels;  // largest first; all of them
  std::vector<RoleShare> roles;    // largest first
  // The number of kernels that have this share together.
  std::size_t kernels_with(double share) const;
};
Top top_kernels(const std::vector<Cell>& cells);

// What is known about one (kernel, shape, dtype, GPU): its best measured time, or the distance from
// the roof that binds it.
struct Known {
  std::string kernel, shape, dtype, gpu;
  std::optional<double> best_ns;           // of a config cache, for this shape and GPU
  std::optional<double> roof_utilization;  // 0 to 1
  bool stale = false;                      // the winner was measured with another driver or toolkit
};
enum class HeadroomBasis { kBestKnown, kRoofline, kAssumed };
std::string_view to_text(HeadroomBasis basis);  // "best_known", "roofline", "assumed"

struct TuneTask {
  std::string kernel, op, shape, dtype, gpu, role;
  double launches = 0, gpu_s = 0, p50_ns = 0;
  double headroom = 0;  // 0 to 1
  double best_ns = 0;   // the best known time; 0 = none
  HeadroomBasis basis = HeadroomBasis::kAssumed;
  bool stale = false;
  double saving_s() const { return gpu_s * headroom; }
};
// Stale winners come first; then by saving, largest first. Without kernels that no tuning changes.
std::vector<TuneTask> tune_these(const std::vector<Cell>& cells, const std::vector<Known>& known,
                                 std::size_t limit);

}  // namespace purlin::fleet::analysis
