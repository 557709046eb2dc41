// SPDX-License-Identifier: Apache-2.0
// Mix: levels of kernels with the mix of shapes held fixed. A stratum is kernel, shape, data type
// and GPU model; only cells of one stratum are compared with each other.
//
// A level is a log of a duration relative to the stratum's own reference, averaged over strata with
// weights that do not change with time or side. Pure functions, safe on any thread. Cannot fail.
#pragma once

#include "fleet/analysis/cells.h"
#include "fleet/analysis/coverage.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace purlin::fleet::analysis {

// A kernel on a model of GPU: what a conclusion is about.
struct KernelKey {
  std::string kernel, gpu;
  auto operator<=>(const KernelKey&) const = default;  // NOLINT(modernize-use-nullptr)
};
struct StratumKey {
  std::string shape, dtype;
  auto operator<=>(const StratumKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

using Strata = std::map<StratumKey, Sketch>;
using NodeStrata = std::map<std::string, Strata>;  // by node
std::map<KernelKey, NodeStrata> by_kernel(const std::vector<Cell>& cells);
// All nodes together.
Strata merged(const NodeStrata& nodes);

// The levels of one kernel by node and step of time.
struct Levels {
  std::vector<std::int64_t> steps;          // begins, ascending, without holes
  std::vector<std::string> nodes;           // sorted
  std::vector<std::vector<double>> values;  // [node][step], log; NaN: no cell there
  // By step: the median over nodes of their levels, each relative to its own mean; NaN: no node.
  std::vector<double> median_over_nodes() const;
};
Levels levels_of(const std::vector<const Cell*>& cells, std::int64_t step_ns, const Needs& needs);

// One node's shift between two sides: the mean over common strata of log(p50 after / p50 before).
// The weight of a stratum is the smaller of its two GPU times.
struct Shift {
  double log_ratio = 0;
  double common_before_ns = 0, common_after_ns = 0;  // GPU time in common strata
  int strata = 0;
};
Shift shift_of(const Strata& before, const Strata& after, const Needs& needs);

double log_p50(const Sketch& sketch);

}  // namespace purlin::fleet::analysis
