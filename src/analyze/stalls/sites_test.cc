// SPDX-License-Identifier: Apache-2.0
#include "analyze/stalls/sites.h"

#include "analyze/advise/advice.h"
#include "analyze/report/report.h"
#include "analyze/report/testing.h"
#include "analyze/stalls/stalls.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

Profile sampled() {
  Profile profile = sketches_only();
  add_sampled_stalls(profile);
  return profile;
}

const KernelStat& named(const Report& report, const std::string& part) {
  for (const KernelStat& kernel : report.kernels)
    if (kernel.name.full.find(part) != std::string::npos) return kernel;
  ADD_FAILURE() << part;
  return report.kernels.front();
}

TEST(StallSites, InstructionsOfALineAreOneAndTheHottestLineIsFirst) {
  const Report report = build_report(sampled(), GroupBy::kKernel);
  const StallSites& sites = named(report, "saxpy").sampled;
  EXPECT_EQ(sites.samples, 1000);
  ASSERT_EQ(sites.lines.size(), 3u);
  EXPECT_EQ(sites.lines[0].where(), "/src/saxpy.cu:14");
  EXPECT_EQ(sites.lines[0].instructions, 2u);
  EXPECT_EQ(sites.lines[0].samples, 800);
  EXPECT_EQ(sites.lines[0].offset, 0x150u);  // its most sampled instruction
  EXPECT_EQ(sites.lines[0].reasons[0].first, "long_scoreboard");
  EXPECT_EQ(sites.lines[1].where(), "+0x200");
  EXPECT_EQ(sites.lines[2].where(), "");  // beyond the bound of places
  EXPECT_EQ(sites.most_of("barrier")->where(), "+0x200");
  EXPECT_EQ(sites.most_of("membar"), nullptr);
}

TEST(StallSites, SamplesGoBeforeCountersAndNotIntoThem) {
  Profile profile = sampled();
  profile.kernels[5].counters = {
      {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", 9, 1}};
  const Report report = build_report(profile, GroupBy::kKernel);
  const KernelStat& saxpy = named(report, "saxpy");
  const StallTable table = read_stalls(saxpy.counters, saxpy.sampled);
  EXPECT_TRUE(table.sampled);
  EXPECT_EQ(table.samples, 1000);
  EXPECT_EQ(table.reasons[0].name, "long_scoreboard");
  EXPECT_EQ(saxpy.counters.size(), 1u);
}

TEST(StallSites, FunctionsThatAreNoKernelAreToldApart) {
  const Report report = build_report(sampled(), GroupBy::kKernel);
  EXPECT_EQ(report.stall_sampling.samples, 1050);
  ASSERT_EQ(report.stall_sampling.elsewhere.size(), 1u);
  EXPECT_EQ(report.stall_sampling.elsewhere[0].second, 50);
  EXPECT_TRUE(named(report, "wgrad").sampled.empty());
  for (const KernelStat& op : build_report(sampled(), GroupBy::kOp).kernels)
    EXPECT_TRUE(op.sampled.empty());  // of which op they are is not known
}

// Without CUPTI records of launches, the samples rank the kernels.
TEST(StallSites, KernelsWithoutRecordsAreRowsRankedBySamples) {
  Profile profile = sampled();
  profile.kernels.clear();
  profile.stalls.functions[1].sites[0].counts[0].samples = 4000;
  std::vector<std::size_t> row_of;
  const Report report = build_rows(profile, GroupBy::kKernel, {}, &row_of);
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_EQ(report.kernels[0].name.full, "helper(float)");
  EXPECT_EQ(report.kernels[0].sampled.samples, 4000);
  EXPECT_EQ(report.kernels[1].sampled.lines[0].line, 14u);
  EXPECT_TRUE(report.stall_sampling.elsewhere.empty());
  EXPECT_TRUE(row_of.empty());
  EXPECT_TRUE(report.kernels[0].duration.empty());
}

TEST(StallSites, AnotherBuildsSamplesAreNotThisOnes) {
  Profile profile = sampled();
  for (KernelRow& row : profile.kernels) row.build = "v2";
  const Report report = build_report(profile, GroupBy::kKernel);
  EXPECT_TRUE(named(report, "saxpy").sampled.empty());
}

TEST(StallSites, AdviceSaysWhere) {
  const Profile profile = sampled();
  const Advice advice = analyze::advise(profile, analyze_timeline(profile));
  ASSERT_FALSE(advice.stalls.empty());
  EXPECT_EQ(advice.stalls[0].reason, "long_scoreboard");
  EXPECT_EQ(advice.stalls[0].where, "/src/saxpy.cu:14");
}

}  // namespace
}  // namespace purlin::analyze
