// SPDX-License-Identifier: Apache-2.0
// The tasks that follow from a work list (work_list.h): kernels that programs launch without an
// entry, and entries that were measured under another driver or toolkit.
//
// Pure, except for the lookups in the store. A row that was tuned or validated in the meantime has
// no task. A question that no known spec answers has none either: its program states no spec, and
// the kernel was never tuned, or by other names of the dimensions. Thread-safety: that of the
// store. Cannot fail.
#pragma once

#include "backlog/task.h"
#include "backlog/work_list.h"
#include "cache/store/store.h"

#include <string>
#include <vector>

namespace purlin::backlog {

struct WorkTasks {
  // "tune" and "validate", in the order of the rows (order.h ranks them). A "validate" knows the
  // entry's time as the GPU time of a launch.
  std::vector<Task> tasks;
  // The questions without a spec, each kernel once: its name, and why.
  std::vector<std::string> left_out;
};
WorkTasks work_tasks(const WorkList& list, const cache::Store& store);

}  // namespace purlin::backlog
