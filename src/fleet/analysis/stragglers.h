// SPDX-License-Identifier: Apache-2.0
// Stragglers: GPUs that are slow against their peers on equal kernels and shapes, or against their
// own past.
//
// Scores are those of NVRx: 1 = as fast as the reference, 0.8 = takes 1.25 times as long. Only
// equal strata (kernel, shape, data type, GPU model) are compared. Pure, safe on any thread. Cannot
// fail.
#pragma once

#include "fleet/analysis/coverage.h"
#include "fleet/analysis/mix.h"

#include <optional>
#include <string>
#include <vector>

namespace purlin::fleet::analysis {

struct Straggler {
  std::string node, device, gpu;
  std::optional<double> relative_score;    // against its peers
  std::optional<double> individual_score;  // against its own first half of the period
  bool slow_to_peers = false, slow_to_past = false;
  double deviations = 0;  // from its peers, in robust standard deviations of them
  int peers = 0, strata = 0;
  double gpu_s = 0, lost_gpu_s = 0;
  std::string worst_kernel;  // that adds most lost time
};
struct StragglerOptions {
  Needs needs;
  double min_slowdown = 0.05;
  double min_deviations = 5;  // of ten devices and more; of fewer, 1.6 times as many
  int min_peers = 5;
};
struct Stragglers {
  std::optional<std::string> refused;
  int devices = 0;                      // with peers
  std::vector<Straggler> devices_slow;  // by lost GPU time
  std::vector<std::string> thin;        // devices without enough peers or launches, with the reason
};
// Cells without a device count as one device for each node.
Stragglers find_stragglers(const std::vector<Cell>& cells, const StragglerOptions& options);

}  // namespace purlin::fleet::analysis
