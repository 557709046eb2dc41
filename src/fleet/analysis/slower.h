// SPDX-License-Identifier: Apache-2.0
// Slower: the kernels that became slower during a period, with when, by how
// much and what else changed then. Few false alarms: 1 % for all kernels of a
// fleet in a period (docs/design/fleet-analysis.md).
//
// An alarm needs all of this:
// - The mix-fixed levels of the nodes moved: an exact signed-rank test, over
// all kernels (Holm) and
//   all times (Bonferroni).
// - The history has a rise that lasts to the end, of at least the minimum.
// With a change point of the history alone it is a suspect: a reason for a
// paired run, never for an alert. Pure, deterministic, safe on any thread.
// Cannot fail.
#pragma once

#include "fleet/analysis/coverage.h"
#include "fleet/analysis/mix.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::fleet::analysis {

// What most GPU time ran on before and after: "driver", "570.86" -> "580.65".
struct EnvironmentMark {
  std::string what, before, after;
  double share_before = 0, share_after = 0;  // of the GPU time on that side
};

struct SlowerKernel {
  KernelKey key;
  std::string role;
  bool alarm = false;  // Else a suspect.
  // Time after / before, with the mix fixed.
  double ratio = 1, low = 0, high = 0, confidence = 0;
  double p_value = 1;                  // Over all tested times of this kernel.
  double history_p = 1;                // Of the change point.
  std::int64_t at_ns = 0;              // Begin of the first step at the new level.
  int nodes = 0;                       // that have both sides
  double gpu_s_after = 0;              // of the kernel since then
  double lost_gpu_s = 0;               // of it, what the change costs
  std::vector<EnvironmentMark> marks;  // empty: no recorded change
  std::string why_suspect;             // what an alarm lacks
};
struct RefusedKernel {
  KernelKey key;
  std::string why;
};
struct SlowerOptions {
  Needs needs;
  std::int64_t step_ns = 6 * kHourNs;   // of levels and change points
  std::int64_t test_every_ns = kDayNs;  // times that the test may choose
  double alpha = 0.01;                  // for the fleet and period
  double min_magnitude = 0.02;
};
struct Slower {
  std::optional<std::string> refused;  // the whole of it
  int tested = 0;                      // kernels
  std::vector<SlowerKernel> kernels;   // alarms first, then by lost GPU time
  std::vector<RefusedKernel> thin;
};
Slower got_slower(const std::vector<Cell>& cells, const std::vector<CoverageCell>& coverage,
                  const SlowerOptions& options);

// The same kernel by kernel: memory for the cells of one of them. One thread.
class SlowerSearch {
 public:
  explicit SlowerSearch(const SlowerOptions& options);
  SlowerSearch(const SlowerSearch&) = delete;
  SlowerSearch& operator=(const SlowerSearch&) = delete;
  ~SlowerSearch();
  // All cells of one kernel on one GPU model, once.
  void add(const KernelKey& key, const std::vector<const Cell*>& cells);
  Slower finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// `purlin guard bisect` between the builds of its mark; "" without one, or
// where a build's name is no plain revision: names come from other machines.
std::string bisect_command(const SlowerKernel& kernel);

}  // namespace purlin::fleet::analysis
