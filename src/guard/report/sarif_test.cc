// SPDX-License-Identifier: Apache-2.0
#include "guard/report/sarif.h"

#include <gtest/gtest.h>

namespace purlin::guard {
namespace {

ReportItem item(const std::string& kernel, Verdict verdict, const std::string& file) {
  ReportItem item;
  item.kernel = kernel;
  item.shape = "M=512";
  item.file = file;
  item.result.verdict = verdict;
  item.result.pairs = 18;
  item.result.effect = {10, 1.08, 1.07, 1.09, 0.95, 0.001, 0.999};
  item.result.cause = "code";
  return item;
}

TEST(Sarif, HoldsWhatDidNotPassWhereItStands) {
  Report report;
  report.suite = "gate";
  report.items = {item("gemm", Verdict::kRegression, "/repo/kernels/my gemm.toml"),
                  item("axpy", Verdict::kPass, "/repo/a.toml"),
                  item("conv", Verdict::kInconclusive, "")};
  const Json sarif = to_sarif(report, "/repo");
  EXPECT_EQ(sarif["version"].as_string(), "2.1.0");
  const Json& run = sarif["runs"].items()[0];
  ASSERT_EQ(run["results"].size(), 2u);
  const Json& first = run["results"].items()[0];
  EXPECT_EQ(first["ruleId"].as_string(), "purlin/regression");
  EXPECT_EQ(first["level"].as_string(), "error");
  EXPECT_NE(first["message"]["text"].as_string().find("gemm M=512: 1.080x"), std::string::npos);
  EXPECT_EQ(
      first["locations"].items()[0]["physicalLocation"]["artifactLocation"]["uri"].as_string(),
      "kernels/my%20gemm.toml");
  EXPECT_EQ(run["results"].items()[1]["locations"].size(), 0u);
  // The same finding next time, other findings now.
  const auto fingerprint = [](const Json& result) {
    return result["partialFingerprints"]["purlinItem/v1"].as_string();
  };
  report.items[0].result.effect.ratio = 1.5;
  EXPECT_EQ(fingerprint(first),
            fingerprint(to_sarif(report, "")["runs"].items()[0]["results"].items()[0]));
  EXPECT_NE(fingerprint(first), fingerprint(run["results"].items()[1]));
  // Every rule that results name is declared.
  EXPECT_EQ(run["tool"]["driver"]["rules"].size(), 3u);
}

}  // namespace
}  // namespace purlin::guard
