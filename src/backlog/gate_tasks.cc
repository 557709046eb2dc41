// SPDX-License-Identifier: Apache-2.0
#include "backlog/gate_tasks.h"

#include "base/text.h"

namespace purlin::backlog {

std::vector<Task> gate_tasks(const std::vector<CheckedWinner>& winners, const DeviceInfo& device,
                             const std::vector<std::string>& changes,
                             const std::string& checked_at) {
  std::vector<Task> tasks;
  for (const CheckedWinner& winner : winners) {
    if (!winner.slower && changes.empty()) continue;
    Task task;
    task.key = {"validate",  winner.kernel,  winner.shape,
                device.name, device.toolkit, device.driver};
    task.spec = winner.spec;
    task.launch_ns = winner.launch_ns;
    task.queued_at = task.first_queued_at = checked_at;
    if (winner.slower) {
      task.key.kind = "retune";
      task.ratio = winner.ratio;
      task.reason = fmt::format(
          "the cached winner takes {:.3f} times as long as its baseline; "
          "cause: {}",
          winner.ratio, winner.cause);
    } else {
      task.reason = "measured in another environment: " + join(changes, "; ");
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace purlin::backlog
