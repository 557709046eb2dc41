// SPDX-License-Identifier: Apache-2.0
// Joins timelines: the events of one behind those of another, with their indices moved. The caller
// sorts afterwards (sort_timeline). Pure functions over values; not thread-safe. Cannot fail: an
// activity whose row is not in the map is left out.
#pragma once

#include "model/profile/timeline.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace purlin::profile {

// From the indices of a part to those of the whole.
struct TimelineMoves {
  const std::vector<std::uint32_t>& kernels;  // rows
  const std::vector<std::uint32_t>& copies;
  std::function<int(int)> device;
  std::function<std::uint32_t(std::uint32_t)> process;
  std::function<std::uint32_t(const std::string&)> name;  // index into the whole's names
};

void append_events(Timeline& into, const Timeline& part, const TimelineMoves& moves);
// Stated bounds grow to cover a timeline without any. Two timelines without bounds stay so.
void join_bounds(Timeline& into, const Timeline& from);

}  // namespace purlin::profile
