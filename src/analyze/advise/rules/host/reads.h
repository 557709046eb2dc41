// SPDX-License-Identifier: Apache-2.0
// Reads: values of the device that the host reads, such as by .item(), and what only such a read
// needs. Pure functions over a sorted profile; a profile without calls or ops has none.
#pragma once

#include "analyze/timeline/intervals.h"
#include "model/profile/profile.h"

#include <cstdint>
#include <vector>

namespace purlin::analyze {

inline constexpr std::uint64_t kReadBytes = 64;  // of a copy that carries single values
inline constexpr int kMostOpsAbove = 64;         // records of other tools may go in circles

// What the host reads: the time of the ops, and the device's work that makes what is read.
struct Reads {
  std::vector<Interval> when;  // in order and disjoint
  std::vector<std::uint32_t> work;
  double tests = 0;   // of all values, such as aten::any: what it asks decides, or is an assertion
  double values = 0;  // read by the program itself and not within another op
};
// Of calls that wait.
Reads find_reads(const Profile& profile, const std::vector<std::uint32_t>& calls);

// Reads of a thread that gave the device no work since its last read: every value was there then.
struct ReadsInARow {
  std::vector<std::uint32_t> again;  // calls that wait, all but the first of each row; in order
  std::vector<Interval> between;     // of the host, from one read to the next; in order
};
ReadsInARow reads_in_a_row(const Timeline& timeline);

}  // namespace purlin::analyze
