// SPDX-License-Identifier: Apache-2.0
#include "profile/import/ncu/stall_csv.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

Result<Profile> read(std::string_view text) {
  return import_stall_csv(Input::from_bytes(text), "s.csv", {});
}

TEST(StallCsv, SamplesBecomeTheCountersOfTheirKernel) {
  const auto profile = read(
      "Kernel Name,Stall Reason,Samples\n"
      "\"k(int, float)\",barrier,60\r\n"
      "\"k(int, float)\",Long Scoreboard,30\n"
      "\"k(int, float)\",barrier,20\n"
      "other,smsp__pcsamp_warps_issue_stalled_wait,5\n"
      "other,smsp__pcsamp_warps_issue_stalled_wait_not_issued,4\n");
  ASSERT_TRUE(profile.is_ok()) << profile.status().message();
  ASSERT_EQ(profile->kernels.size(), 2u);
  const KernelRow& row = profile->kernels[0];
  EXPECT_EQ(row.name, "k(int, float)");
  ASSERT_EQ(row.counters.size(), 2u);
  EXPECT_EQ(row.counters[0].name, "smsp__pcsamp_warps_issue_stalled_barrier");
  EXPECT_EQ(row.counters[0].value, 80);
  EXPECT_EQ(row.counters[1].value, 30);
  EXPECT_TRUE(row.duration.empty());
  ASSERT_EQ(profile->kernels[1].counters.size(), 1u);
  EXPECT_EQ(profile->kernels[1].counters[0].value, 5);
}

TEST(StallCsv, OlderNamesMeanTheSame) {
  EXPECT_EQ(stall_reason("CUPTI_ACTIVITY_PC_SAMPLING_STALL_MEMORY_DEPENDENCY"), "long_scoreboard");
  EXPECT_EQ(stall_reason("stall_sync"), "barrier");
  EXPECT_EQ(stall_reason("no_instructions"), "no_instruction");
  EXPECT_EQ(stall_reason("math pipe throttle"), "math_pipe_throttle");
  EXPECT_EQ(stall_reason("a_reason_of_tomorrow"), "a_reason_of_tomorrow");
}

TEST(StallCsv, IsKnownByItsHeader) {
  EXPECT_TRUE(looks_like_stall_csv("kernel,stall_reason,samples\nk,barrier,1\n"));
  EXPECT_TRUE(looks_like_stall_csv("\xEF\xBB\xBFpc,functionName,stallReason,stallReasonCount\n"));
  EXPECT_FALSE(looks_like_stall_csv("kernel,samples\n"));
  EXPECT_FALSE(looks_like_stall_csv("\"ID\",\"Kernel Name\",\"Metric Name\"\n"));
  EXPECT_FALSE(looks_like_stall_csv(""));
}

TEST(StallCsv, DamageIsSaid) {
  EXPECT_FALSE(read("").is_ok());
  EXPECT_FALSE(read("kernel,stall,samples\n").is_ok());
  const auto rows =
      read("kernel,stall,samples\nk,barrier,12\nk,barrier,many\n,wait,3\nk,wait,-1\n");
  ASSERT_TRUE(rows.is_ok());
  EXPECT_EQ(rows->coverage.notes.front().count, 3);
  const auto cut = read("kernel,stall,samples\nk,barrier,12\n\"k,wa");
  ASSERT_TRUE(cut.is_ok());
  EXPECT_TRUE(cut->partial);
}

}  // namespace
}  // namespace purlin::profile
