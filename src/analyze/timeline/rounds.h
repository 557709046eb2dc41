// SPDX-License-Identifier: Apache-2.0
// Rounds: the iterations of a program that marks none, found from the order of its launches. A
// guess, and reported as one.
//
// The launches of a device form a sequence of tokens: one token is a kernel by name, a kind of
// memcpy, or a whole launch of a CUDA graph. A graph's nodes therefore never make rounds. An anchor
// is a token that recurs at a regular distance, counted in launches. Its occurrences cut the
// sequence into rounds. The score of an anchor is the share of the device's kernel time whose
// tokens occur equally often in each round. The anchor with the best score wins, and of equal ones
// the one with the most rounds. Wall time plays no part: idle time and start-up do not matter.
// Where no anchor has half of the kernel time, the longest stretch without a new token is searched
// alone. A compiler that tries out kernels may take more of a recording than the first steps.
// Pure functions, linear in the number of activities. Method: docs/concepts/timeline.md, "Steps".
#pragma once

#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/intervals.h"
#include "model/profile/profile.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::analyze {

struct Rounds {
  std::vector<Interval> windows;  // on the device, in order, disjoint; empty: none found
  std::size_t launches = 0;       // tokens in the median round
  double score = 0;               // share of the device's kernel time, 0 to 1
};

// `name_numbers`: number_names(profile). At least three rounds of two launches or more; ten in such
// a stretch.
Rounds find_rounds(const Profile& profile, const std::vector<std::uint32_t>& name_numbers,
                   const DeviceWork& work);

}  // namespace purlin::analyze
