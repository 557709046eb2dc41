// SPDX-License-Identifier: Apache-2.0
#include "guard/check/findings.h"

#include "base/text.h"

namespace purlin::guard {

std::vector<cache::Task> findings(const Report& report, const Suite& suite,
                                  const DeviceInfo& device,
                                  const std::vector<std::string>& changes) {
  std::vector<cache::Task> tasks;
  // A check's report has the suite's items in the suite's order.
  for (std::size_t i = 0; i < report.items.size() && i < suite.items.size(); ++i) {
    const ReportItem& item = report.items[i];
    if (suite.items[i].config != "cached") continue;
    cache::Task task;
    task.kernel = item.kernel;
    task.shape = item.shape;
    task.spec = suite.items[i].spec_path;
    task.device = device.name;
    task.toolkit = device.toolkit;
    task.driver = device.driver;
    task.queued_at = report.environment.recorded_at;
    if (item.result.verdict == Verdict::kRegression) {
      task.kind = "retune";
      task.ratio = item.result.effect.ratio;
      task.reason = fmt::format(
          "the cached winner takes {:.3f} times as long as its baseline; "
          "cause: {}",
          task.ratio, item.result.cause);
    } else if (!changes.empty()) {
      task.kind = "validate";
      task.reason = "measured in another environment: " + join(changes, "; ");
    } else {
      continue;
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace purlin::guard
