// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(Time, UnitsHaveTheNamesThatToolsWrite) {
  for (const char* unit :
       {"us", "usec", "usecs", "usecond", "µs", "μs", "microsecond", "Microseconds", "USEC"})
    EXPECT_EQ(ns_per_unit(unit), 1e3) << unit;
  EXPECT_EQ(ns_per_unit("ns"), 1.0);
  EXPECT_EQ(ns_per_unit("Nanoseconds"), 1.0);
  EXPECT_EQ(ns_per_unit("ms"), 1e6);
  EXPECT_EQ(ns_per_unit("s"), 1e9);
  EXPECT_EQ(ns_per_unit("secs"), 1e9);
  for (const char* other : {"", "m", "GFLOP/s", "ss", "minutes"})
    EXPECT_EQ(ns_per_unit(other), std::nullopt) << other;
}

}  // namespace
}  // namespace purlin
