// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/tuning_hours.h"

#include "base/files.h"

#include <gtest/gtest.h>

namespace purlin::cli {
namespace {

TEST(TuningHours, AreKeptOverARestartAndEndWithTheDay) {
  const std::string folder = *make_temporary_directory("hours");
  const std::string path = join_path(folder, "hours.json");
  FakeClock clock;
  clock.now_ns = 1'790'000'000'000'000'000;
  {
    TuningHours hours = TuningHours::open(path, clock).value();
    EXPECT_EQ(hours.spent_s("cuda:0"), 0);
    ASSERT_TRUE(hours.add("cuda:0", 100).is_ok());
    ASSERT_TRUE(hours.add("cuda:0", 50).is_ok());
  }
  TuningHours hours = TuningHours::open(path, clock).value();
  EXPECT_EQ(hours.spent_s("cuda:0"), 150);
  EXPECT_EQ(hours.spent_s("cuda:1"), 0);
  clock.now_ns += 86'400'000'000'000;
  EXPECT_EQ(hours.spent_s("cuda:0"), 0);
  ASSERT_TRUE(write_atomic(path, "x").is_ok());
  EXPECT_EQ(TuningHours::open(path, clock).status().code(), Code::kCorrupt);
  EXPECT_TRUE(remove_tree(folder).is_ok());
}

}  // namespace
}  // namespace purlin::cli
