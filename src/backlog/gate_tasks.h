// SPDX-License-Identifier: Apache-2.0
// The tasks that follow from a check of the regression gate. A cached winner that became slower is
// tuned again. When device, driver or toolkit differ from those of the baseline, the other cached
// winners of the suite are validated. Pure function, safe on any thread. Cannot fail.
#pragma once

#include "backlog/task.h"
#include "model/device/device.h"

#include <string>
#include <vector>

namespace purlin::backlog {

// A cached winner that the gate measured.
struct CheckedWinner {
  std::string kernel, shape;
  std::string spec;  // path
  bool slower = false;
  double ratio = 0;      // of its time to that of the baseline
  double launch_ns = 0;  // measured now, 0 = not known
  std::string cause;
};

// `changes` of the environment are sentences. `checked_at` is RFC 3339.
std::vector<Task> gate_tasks(const std::vector<CheckedWinner>& winners, const DeviceInfo& device,
                             const std::vector<std::string>& changes,
                             const std::string& checked_at);

}  // namespace purlin::backlog
