// SPDX-License-Identifier: Apache-2.0
#include "guard/check/findings.h"

#include <gtest/gtest.h>

namespace purlin::guard {
namespace {

TEST(Findings, AWinnerThatLostIsRetunedAndANewEnvironmentValidatesTheRest) {
  Suite suite;
  Report report;
  report.environment.recorded_at = "2026-11-20T00:00:00Z";
  for (const char* config : {"cached", "default", "cached"}) {
    SuiteItem item;
    item.spec_path = "/k/gemm.toml";
    item.config = config;
    suite.items.push_back(item);
    ReportItem reported;
    reported.kernel = "gemm" + std::to_string(suite.items.size());
    reported.result.verdict = Verdict::kPass;
    report.items.push_back(reported);
  }
  DeviceInfo device;
  device.name = "NVIDIA H200";
  EXPECT_TRUE(findings(report, suite, device, {}).empty());
  report.items[0].result.verdict = Verdict::kRegression;
  report.items[0].result.effect.ratio = 1.25;
  report.items[0].result.cause = "config";
  report.items[1].result.verdict = Verdict::kRegression;  // not a cached winner
  std::vector<backlog::Task> tasks = findings(report, suite, device, {});
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].key.kind, "retune");
  EXPECT_EQ(tasks[0].key.kernel, "gemm1");
  EXPECT_EQ(tasks[0].ratio, 1.25);
  EXPECT_NE(tasks[0].reason.find("1.250 times"), std::string::npos);
  tasks = findings(report, suite, device, {"driver 570 then, 580 now"});
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[1].key.kind, "validate");
  EXPECT_EQ(tasks[1].key.kernel, "gemm3");
}

}  // namespace
}  // namespace purlin::guard
