// SPDX-License-Identifier: Apache-2.0
#include "guard/history/page.h"

#include <gtest/gtest.h>

namespace purlin::guard {
namespace {

History levels(const std::string& kernel, int runs, int change_at) {
  History history;
  for (int i = 0; i < runs; ++i) {
    HistoryRun run;
    run.suite = "gate";
    run.environment.build = "b" + std::to_string(i) + "<i>";
    run.environment.recorded_at = "2026-11-" + std::to_string(10 + i);
    DeviceInfo device;
    device.name = "GPU <b>";
    run.environment.devices.push_back(device);
    const double ns = (i < change_at ? 1000 : 1200) + i % 3;
    run.items.push_back({{kernel, "M=1", ""}, {ns, ns, ns}});
    history.runs.push_back(run);
  }
  return history;
}

TEST(HistoryPage, DrawsEachSeriesAndItsChanges) {
  const History history = levels("gemm", 20, 10);
  const std::string page = render_history_page(history, analyse_history(history, {}));
  EXPECT_NE(page.find("class=\"slower\""), std::string::npos);
  EXPECT_NE(page.find("<td>1.2"), std::string::npos);
  EXPECT_NE(page.find("20 runs"), std::string::npos);
  EXPECT_NE(page.find("style-src 'sha256-"), std::string::npos);
}

TEST(HistoryPage, NothingOfAFileIsMarkup) {
  History history = levels("<script>alert(1)</script>", 1, 0);
  history.notes = {"<img src=x>"};
  const std::string page = render_history_page(history, analyse_history(history, {}));
  for (const char* bad : {"<script", "<img", "GPU <b>", "<i>", "unsafe", "http:"})
    EXPECT_EQ(page.find(bad), std::string::npos) << bad;
  EXPECT_NE(page.find("No level moved"), std::string::npos);
}

TEST(HistoryPage, ALongSeriesIsDrawnInPart) {
  const History history = levels("gemm", 5000, 5000);
  HistoryOptions options;
  options.change_points.permutations = 9;
  const std::string page = render_history_page(history, analyse_history(history, options));
  EXPECT_LT(page.size(), 500'000u);
}

}  // namespace
}  // namespace purlin::guard
