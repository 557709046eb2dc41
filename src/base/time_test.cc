// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include "base/os/wall_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace purlin {
namespace {

// A clock or a file of another age may not wrap around: it would be older than everything.
TEST(Time, TimesThatDoNotFitStayAtTheirEnd) {
  EXPECT_EQ(wall_ns_of({1, 5}), 1'000'000'005);
  EXPECT_EQ(wall_ns_of({-1, 0}), 0);
  EXPECT_EQ(wall_ns_of({std::int64_t{1} << 40, 0}), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(wall_ns_of({9'223'372'036, 999'999'999}), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(format_rfc3339_ns(wall_ns_of({std::int64_t{1} << 40, 0})),
            "2262-04-11T23:47:16.854775807Z");
  EXPECT_EQ(format_rfc3339_ns(-1), "1969-12-31T23:59:59.999999999Z");
}

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
