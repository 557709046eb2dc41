// SPDX-License-Identifier: Apache-2.0
// Merges a trace of some steps of a run into the profile of the whole run. Totals, counts and
// phases stay those of the run. The trace gives the rows ops, shapes and types, the timeline and
// the data flow.
//
// A row takes the ops of the trace's launches of the same kernel, grid and block. Where several ops
// launch it, it is split: counts in the trace's proportion, durations as the trace has them, scaled
// to the row's total. Pure functions over values; not thread-safe. Cannot fail: what does not match
// is counted.
#pragma once

#include "model/profile/profile.h"

#include <cstdint>

namespace purlin::profile {

struct TraceMerge {
  double launches = 0;  // of kernels in the trace
  // Time of the run's kernels after the merge, and the part of it whose rows have an op.
  double total_ns = 0, with_op_ns = 0;
  double split_launches = 0;  // launches of the run in rows of several ops
  // Launches and number of kernels that the run has no row of.
  double added_launches = 0;
  std::uint64_t added_kernels = 0;
};

// `pid`: the process of the run that was traced.
TraceMerge merge_trace(Profile& run, const Profile& trace, std::int64_t pid);

}  // namespace purlin::profile
