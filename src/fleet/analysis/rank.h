// SPDX-License-Identifier: Apache-2.0
// Rank: the kernels that are worth tuning.
//
// Pure functions over plain types, safe on any thread. Cannot fail.
#pragma once

#include "fleet/analysis/cells.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::fleet::analysis {

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
