// SPDX-License-Identifier: Apache-2.0
// Made: arrays that the host makes or prepares and then sends to the device, and the host's time
// for it. A copy from memory that is not pinned shows them: what the thread did since its last call
// that gave the device work was for this array. Pure functions over the facts.
#pragma once

#include "analyze/advise/facts.h"
#include "analyze/timeline/intervals.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct Made {
  std::uint32_t copy = 0;     // index into Timeline::activities.
  Interval work;              // From the last call of the device to the op that copies.
  Interval sent;              // From the first op for the array to the end of the op that copies.
  std::uint32_t process = 0;  // Index into Profile::processes.
  double random_ns = 0;       // Of the work: ops of the host that draw numbers.
};
// In order of the host's time. Empty where no calls or ops were recorded.
std::vector<Made> made_by_host(const Facts& facts);

// Where such work takes a part of each step that counts: its intervals, in order and disjoint.
inline constexpr double kMadeShare = 0.1, kLongWork = 50'000;  // of the unit; ns for each array
std::vector<Made> long_work(const Facts& facts, const std::vector<Made>& made);
std::vector<Interval> times_of_work(const std::vector<Made>& made);

// Remedy keep_on_device, in the words for what the host makes (rules/round_trip.cc).
Intervention keep_what_is_made();

}  // namespace purlin::analyze
