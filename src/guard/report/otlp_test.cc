// SPDX-License-Identifier: Apache-2.0
#include "guard/report/otlp.h"

#include <gtest/gtest.h>

namespace purlin::guard {
namespace {

std::string attribute(const Json& point, std::string_view key) {
  for (const Json& one : point["attributes"].items())
    if (one["key"].as_string() == key) return one["value"]["stringValue"].as_string();
  return "";
}

TEST(GuardOtlp, HasVerdictAndRatioOfEachItem) {
  Report report;
  report.suite = "gate";
  report.items.resize(2);
  report.items[0].kernel = "gemm";
  report.items[0].shape = "M=512";
  report.items[0].result.verdict = Verdict::kRegression;
  report.items[0].result.effect = {10, 1.08, 1.07, 1.09, 0.95, 0.001, 0.999};
  report.items[0].result.baseline_ns = 1000;
  report.items[0].result.current_ns = 1080;
  report.items[1].kernel = "axpy";  // nothing measured: a verdict, no ratio
  const Json otlp = to_otlp(report, 1'700'000'000'000'000'000);
  const auto& metrics =
      otlp["resourceMetrics"].items()[0]["scopeMetrics"].items()[0]["metrics"].items();
  const auto points = [&](std::string_view name) -> const Json::Array& {
    for (const Json& metric : metrics)
      if (metric["name"].as_string() == name) return metric["gauge"]["dataPoints"].items();
    return Json().items();
  };
  ASSERT_EQ(points("purlin.guard.suite.verdict").size(), 1u);
  EXPECT_EQ(attribute(points("purlin.guard.suite.verdict")[0], "verdict"), "regression");
  ASSERT_EQ(points("purlin.guard.verdict").size(), 2u);
  EXPECT_EQ(attribute(points("purlin.guard.verdict")[1], "verdict"), "inconclusive");
  EXPECT_EQ(points("purlin.guard.verdict")[0]["asInt"].as_string(), "1");
  ASSERT_EQ(points("purlin.guard.ratio").size(), 1u);
  EXPECT_EQ(points("purlin.guard.ratio")[0]["asDouble"].as_double(), 1.08);
  EXPECT_EQ(points("purlin.guard.ratio")[0]["timeUnixNano"].as_string(), "1700000000000000000");
  EXPECT_EQ(attribute(points("purlin.guard.ratio")[0], "shape"), "M=512");
  EXPECT_EQ(points("purlin.guard.current.duration")[0]["asDouble"].as_double(), 1080);
}

}  // namespace
}  // namespace purlin::guard
