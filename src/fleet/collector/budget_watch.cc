// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/budget_watch.h"

namespace purlin::fleet {

void BudgetWatch::look(const std::string& capture, double overhead_ns, double wall_ns) {
  if (options_.limit <= 0 || wall_ns <= 0) return;
  int& above = above_[capture];
  if (above < 0) return;
  if (overhead_ns <= options_.limit * wall_ns) {
    above = 0;
    return;
  }
  if (++above < options_.looks) return;
  const Status done = stop_(capture);
  if (!done.is_ok()) {
    if (failed_++ == 0)
      log_.warn("capture takes {:.1f} % of '{}', and cannot be stopped: {}",
                100 * overhead_ns / wall_ns, capture, done.message());
    return;
  }
  above = -1;
  ++stopped_;
  log_.warn("capture took {:.1f} % of '{}', over {:.1f} %: its recording was stopped",
            100 * overhead_ns / wall_ns, capture, 100 * options_.limit);
}

}  // namespace purlin::fleet
