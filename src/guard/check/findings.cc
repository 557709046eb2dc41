// SPDX-License-Identifier: Apache-2.0
#include "guard/check/findings.h"

namespace purlin::guard {

std::vector<backlog::Task> findings(const Report& report, const Suite& suite,
                                    const DeviceInfo& device,
                                    const std::vector<std::string>& changes) {
  std::vector<backlog::CheckedWinner> winners;
  // The report of a check has the items of the suite, in the order of the suite.
  for (std::size_t i = 0; i < report.items.size() && i < suite.items.size(); ++i) {
    if (suite.items[i].config != "cached") continue;
    const ReportItem& item = report.items[i];
    winners.push_back({item.kernel, item.shape, suite.items[i].spec_path,
                       item.result.verdict == Verdict::kRegression, item.result.effect.ratio,
                       item.result.current_ns, item.result.cause});
  }
  return backlog::gate_tasks(winners, device, changes, report.environment.recorded_at);
}

}  // namespace purlin::guard
