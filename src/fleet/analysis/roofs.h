// SPDX-License-Identifier: Apache-2.0
// Roofs: how near the fleet's kernels come to what their GPUs can do, by the problem shapes, data
// types and GPU models of the records. A part that lacks one of them is unknown, never 0.
//
// Functions are pure, and safe on any thread. A RoofReader is for one thread. Neither can fail.
#pragma once

#include "analyze/kernel_name/kernel_name.h"
#include "analyze/roofline/roofline.h"
#include "fleet/analysis/cells.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace purlin::fleet::analysis {

// Reads each name of a kernel and the figures of each GPU once, as both cost more than a roof.
class RoofReader {
 public:
  // Of all launches of `time`, with the shape, type and GPU model of the cell.
  analyze::Roof roof_of(const Cell& cell, const Sketch& time);
  const analyze::KernelName& name_of(const Cell& cell);
  bool knows_gpu(const Cell& cell) { return !gpu_of(cell).ceilings.empty(); }

 private:
  struct Gpu {
    DeviceInfo device;
    analyze::Ceilings ceilings;
  };
  const Gpu& gpu_of(const Cell& cell);

  std::map<std::string, analyze::KernelName> names_;
  std::map<std::string, Gpu> gpus_;
};

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
