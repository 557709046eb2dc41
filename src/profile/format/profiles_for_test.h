// SPDX-License-Identifier: Apache-2.0
// For the tests of this folder: a profile that uses everything a profile can hold, different for
// each seed, and its contents as sorted text, to compare two of them.
#pragma once

#include "model/profile/profile.h"

#include <cstdint>
#include <string>

namespace purlin::profile {

struct TestProfileShape {
  std::uint64_t seed = 1;
  std::size_t kernels = 20, copies = 4;
  std::size_t activities = 200, calls = 150, ops = 100, ranges = 10;
  std::size_t stalled = 6;  // functions
  std::string build = "v1";
};

// Sorted, its indices in range; numbers are whole, so that sums do not depend on their order.
Profile test_profile(const TestProfileShape& shape);

// One line per fact, sorted where the order of a merge may differ: rows, copies, events by what
// they point at rather than by index. Equal texts mean equal contents.
std::string contents(const Profile& profile);

}  // namespace purlin::profile
