// SPDX-License-Identifier: Apache-2.0
// The backlog's file: the tasks that findings queued, next to the config cache that they concern.
//
// Append-only JSON lines (docs/formats/backlog.md). The same finding queued twice is one task with
// two findings. Safe between threads and processes. A queued task is durable when queue() returns.
// Failure: kIo; kCorrupt for a damaged file.
#pragma once

#include "backlog/task.h"
#include "base/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::backlog {

inline constexpr std::string_view kBacklogSchema = "purlin.backlog/1";

std::string backlog_path(const std::string& cache_directory);
Status queue(const std::string& cache_directory, const std::vector<Task>& tasks);
// kNotFound without an open task of that id.
Status finish(const std::string& cache_directory, const std::string& id);
// The queued tasks that are open, in the order of their first finding (order.h ranks them).
Result<std::vector<Task>> open_tasks(const std::string& cache_directory);

}  // namespace purlin::backlog
