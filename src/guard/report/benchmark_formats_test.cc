// SPDX-License-Identifier: Apache-2.0
#include "guard/report/benchmark_formats.h"

#include <gtest/gtest.h>

namespace purlin::guard {
namespace {

Report with_times() {
  Report report;
  ReportItem item;
  item.kernel = "gemm";
  item.shape = "M=64,N=64";
  item.result.verdict = Verdict::kRegression;
  item.result.pairs = 20;
  item.result.baseline_ns = 1000;
  item.result.current_ns = 1100;
  item.result.effect.pairs = 12;
  item.result.effect.ratio = 1.1;
  item.result.effect.low = 1.05;
  item.result.effect.high = 1.15;
  report.items.push_back(item);
  item.variant = "default";
  item.result.current_ns = 1200;  // outside of the interval of the pairs that decided
  report.items.push_back(item);
  item.kernel = "never measured";
  item.result.effect.pairs = 0;
  report.items.push_back(item);
  return report;
}

TEST(BenchmarkFormats, ActionBenchmarkDrawsTheCurrentTimes) {
  const Json list = to_action_benchmark(with_times());
  ASSERT_EQ(list.size(), 2u);
  const Json& first = list.items()[0];
  EXPECT_EQ(first["name"].as_string(), "gemm M=64,N=64");
  EXPECT_EQ(first["unit"].as_string(), "ns");
  EXPECT_EQ(first["value"].as_double(), 1100);
  EXPECT_EQ(first["range"].as_string(), "1050 to 1150");
  EXPECT_EQ(first["extra"].as_string(), "regression, 1.100x of the baseline, 20 pairs");
  EXPECT_EQ(list.items()[1]["name"].as_string(), "gemm M=64,N=64 (default)");
}

TEST(BenchmarkFormats, BencherHasOneObjectForEachItem) {
  const Json names = to_bencher(with_times());
  ASSERT_EQ(names.members().size(), 2u);
  const Json& first = names["gemm M=64,N=64"]["latency"];
  EXPECT_EQ(first["value"].as_double(), 1100);
  EXPECT_EQ(first["lower_value"].as_double(), 1050);
  EXPECT_EQ(first["upper_value"].as_double(), 1150);
  EXPECT_EQ(names["gemm M=64,N=64 (default)"]["latency"]["upper_value"].as_double(), 1200);
}

}  // namespace
}  // namespace purlin::guard
