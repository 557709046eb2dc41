// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/report.h"

#include "analyze/report/testing.h"
#include "analyze/report/text.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

TEST(Report, RanksAndMergesByKernel) {
  const Report report = build_report(sketches_only(), GroupBy::kKernel);
  ASSERT_EQ(report.kernels.size(), 4u);
  const KernelStat& first = report.kernels[0];
  EXPECT_EQ(first.duration.count(), 250);  // both launch shapes, both devices of one model
  EXPECT_EQ(first.launch_shapes, 2);
  EXPECT_EQ(first.launch.grid[0], 128u);  // the shape that took most time
  EXPECT_EQ(first.registers, 128u);
  double share = 0;
  for (const KernelStat& kernel : report.kernels) share += kernel.share;
  EXPECT_NEAR(share, 1, 1e-12);
  EXPECT_EQ(report.launches, 1290);
  EXPECT_EQ(report.kernels[1].label, "saxpy");
  EXPECT_EQ(report.kernels[2].label, "wgrad_engine<128>");
  EXPECT_EQ(report.kernels[3].label, "wgrad_engine<512>");
}

TEST(Report, KeepsLaunchShapesApartWhenAsked) {
  const Report report = build_report(sketches_only(), GroupBy::kLaunch);
  ASSERT_EQ(report.kernels.size(), 5u);
  EXPECT_EQ(report.kernels[0].launch.grid[0], 128u);
  EXPECT_EQ(report.kernels[1].duration.count(), 150);  // cuda:0 and cuda:1 are one model
  EXPECT_EQ(report.kernels[1].launch_shapes, 1);
}

TEST(Report, EqualTotalsRankByName) {
  Profile profile;
  profile.kernels = {row_of("b", 1, 0, 100, 3), row_of("a", 1, 0, 100, 3)};
  EXPECT_EQ(build_report(profile, GroupBy::kKernel).kernels[0].label, "a");
}

TEST(Report, DifferentModelsAreNotMixed) {
  Profile profile = sketches_only();
  profile.environment.devices[1].name = "NVIDIA A100";
  const Report report = build_report(profile, GroupBy::kKernel);
  EXPECT_EQ(report.kernels.size(), 5u);
  const std::string text = render_text(report, Terminal(false, false, false, 120));
  EXPECT_NE(text.find("on NVIDIA A100"), std::string::npos);
}

TEST(Report, APartialProfileSaysSo) {
  Profile profile = sketches_only();
  profile.partial = true;
  const Report report = build_report(profile, GroupBy::kKernel);
  const std::string text = render_text(report, Terminal(false, false, false, 100));
  EXPECT_NE(text.find("PARTIAL PROFILE"), std::string::npos);
  EXPECT_LT(text.find("PARTIAL PROFILE"), text.find("share"));
  EXPECT_TRUE(to_json(report)["coverage"]["partial"].as_bool());
}

TEST(Report, AnEmptyProfileIsAReportToo) {
  const Report report = build_report(Profile{}, GroupBy::kKernel);
  const std::string text = render_text(report, Terminal(false, false, false, 100));
  EXPECT_NE(text.find("No kernels"), std::string::npos);
  EXPECT_NE(text.find("coverage"), std::string::npos);
  EXPECT_EQ(to_json(report)["kernels"].size(), 0u);
  EXPECT_TRUE(to_json(report)["kernels"].is_array());
}

CopyStat only_copy(const char* kind, double bytes, double ns) {
  Profile profile = sketches_only();
  CopyRow copy;
  copy.kind = kind;
  copy.bytes = bytes;
  copy.duration.add(ns);
  profile.copies = {copy};
  return build_report(profile, GroupBy::kKernel).copies.at(0);
}

TEST(ReportCopies, ACopyOnTheDeviceReadsAndWrites) {
  constexpr double kGib = 1 << 30;
  const CopyStat d2d = only_copy("d2d", kGib, 500'000);
  EXPECT_EQ(d2d.traffic_bytes, 2 * kGib);
  EXPECT_NEAR(d2d.utilization, 4.29e12 / 4.8e12, 0.005);  // H200
  EXPECT_NEAR(only_copy("memset", kGib, 500'000).utilization, 2.147e12 / 4.8e12, 0.005);
  // Of a link's rate nothing is known; small copies stay in the L2 cache.
  EXPECT_EQ(only_copy("h2d pinned", kGib, 500'000).utilization, 0);
  EXPECT_EQ(only_copy("d2d", 1 << 20, 1'000).utilization, 0);
}

}  // namespace
}  // namespace purlin::analyze
