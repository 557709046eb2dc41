// SPDX-License-Identifier: Apache-2.0
// Roofs: how near the fleet's kernels come to what their GPUs can do, by the problem shapes, data
// types and GPU models of the records. A part that lacks one of them is unknown, never 0.
//
// Pure functions over plain types, safe on any thread. Cannot fail.
#pragma once

#include "analyze/kernel_name/kernel_name.h"
#include "analyze/roofline/roofline.h"
#include "fleet/analysis/cells.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace purlin::fleet::analysis {

// Of all launches of `time`, with the shape, type and GPU model of the cell.
analyze::Roof roof_of(const Cell& cell, const Sketch& time, const analyze::KernelName& name);

// A kernel, or one of its shapes and types on one model of GPU.
struct RoofRow {
  std::string kernel, shape, dtype, gpu;  // the last three are "" where the row is the kernel
  double gpu_s = 0;
  double known_gpu_s = 0;                           // of it, where the utilisation is known
  std::optional<double> utilization;                // of the binding ceiling, over the known time
  analyze::Bound bound = analyze::Bound::kUnknown;  // of most of the time that has one
  double bound_share = 0;                           // of the GPU time
  std::string bound_from, evidence;                 // of the largest part with this bound
  std::string unknown;  // why the largest part without a utilisation has none; "" = no such part

  std::optional<double> headroom() const;  // what is left to the ceiling
};
enum class RoofsBy { kKernel, kShape };
// The `limit` rows with the most GPU time, largest first.
std::vector<RoofRow> find_roofs(const std::vector<Cell>& cells, RoofsBy by, std::size_t limit);

}  // namespace purlin::fleet::analysis
