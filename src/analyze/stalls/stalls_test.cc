// SPDX-License-Identifier: Apache-2.0
#include "analyze/stalls/stalls.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

Counter sample(const std::string& reason, double count) {
  return {"smsp__pcsamp_warps_issue_stalled_" + reason, count, 1};
}

TEST(Stalls, SharesAreOfAllSamplesAndOfTheStalledOnes) {
  const StallTable table =
      read_stalls({sample("barrier", 60), sample("long_scoreboard", 20), sample("selected", 15),
                   sample("not_selected", 5), sample("barrier_not_issued", 50)});
  EXPECT_TRUE(table.sampled);
  EXPECT_EQ(table.samples, 100);
  ASSERT_EQ(table.reasons.size(), 4u);
  EXPECT_EQ(table.reasons[0].name, "barrier");
  EXPECT_DOUBLE_EQ(table.reasons[0].share, 0.60);
  EXPECT_DOUBLE_EQ(table.reasons[0].stalled, 0.75);
  ASSERT_EQ(table.findings().size(), 1u);
  EXPECT_EQ(table.findings()[0]->name, "barrier");
  EXPECT_EQ(table.findings()[0]->remedy, "fewer_barriers");
}

// 30 % of the stalled samples and 10 % of all: both must be reached.
TEST(Stalls, BothThresholdsMustBeReached) {
  EXPECT_EQ(read_stalls({sample("barrier", 30), sample("wait", 70)}).findings().size(), 2u);
  EXPECT_EQ(read_stalls({sample("barrier", 29), sample("wait", 71)}).findings().size(), 1u);
  EXPECT_EQ(read_stalls({sample("barrier", 9), sample("selected", 91)}).findings().size(), 0u);
  EXPECT_EQ(read_stalls({sample("barrier", 10), sample("selected", 90)}).findings().size(), 1u);
}

TEST(Stalls, WarpStatesAreReadWhereNothingWasSampled) {
  const StallTable table = read_stalls(
      {{"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", 57, 1},
       {"smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio", 2, 1},
       {"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", 1, 1}});
  EXPECT_FALSE(table.sampled);
  EXPECT_EQ(table.reasons[0].name, "long_scoreboard");
  EXPECT_DOUBLE_EQ(table.reasons[0].share, 0.95);
  EXPECT_TRUE(read_stalls({{"dram__bytes.sum", 5, 1}}).empty());
  EXPECT_EQ(read_stalls({{"stall_sync", 60, 1}, {"stall_other", 40, 1}}).reasons[0].name,
            "barrier");
}

TEST(Stalls, WhyMoreOccupancyDoesNotHelp) {
  CounterFigures idle, busy;
  idle.memory_busy = 0.2;
  busy.memory_busy = 0.8;
  const StallTable memory = read_stalls({sample("long_scoreboard", 90), sample("selected", 10)});
  EXPECT_NE(why_occupancy_does_not_help(memory, busy, 0.2).find("80% busy"), std::string::npos);
  EXPECT_EQ(why_occupancy_does_not_help(memory, idle, 0.2), "");  // there it may
  EXPECT_NE(why_occupancy_does_not_help(memory, idle, 0.9).find("90% of the warp slots"),
            std::string::npos);
  const StallTable barrier = read_stalls({sample("barrier", 60), sample("wait", 10)});
  EXPECT_NE(why_occupancy_does_not_help(barrier, idle, 0.2).find("same barriers"),
            std::string::npos);
  const StallTable ready = read_stalls({sample("not_selected", 60), sample("selected", 40)});
  EXPECT_NE(why_occupancy_does_not_help(ready, idle, 0.2).find("issue slots"), std::string::npos);
  EXPECT_EQ(why_occupancy_does_not_help({}, idle, 0.9), "");
}

}  // namespace
}  // namespace purlin::analyze
