// SPDX-License-Identifier: Apache-2.0
// MadeWeek: a week of a made-up fleet as batches, for `purlin serve --demo` and for tests. Some 40
// kernels on five models of GPU, two builds, a new driver, and planted truths:
//
// - rms_norm is 9 % slower on H100 since build v1.9, whose mix of shapes moved, too;
// - paged attention is 6 % slower on H200 since driver 580;
// - a GPU of node h100-07 is 18 % slow; node a100-03 is hardly seen.
//
// Deterministic for an end and a size. Pure; cannot fail.
#pragma once

#include "store/batch.h"

#include <cstdint>
#include <vector>

namespace purlin::fleet {

struct MadeWeekOptions {
  std::int64_t end_ns = 0;  // the week ends with the hour before it
  int nodes_scale = 100;    // per cent of the nodes
  std::uint64_t seed = 1;
};
std::vector<store::Batch> made_week(const MadeWeekOptions& options);

}  // namespace purlin::fleet
