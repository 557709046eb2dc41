// SPDX-License-Identifier: Apache-2.0
#include "backlog/backlog.h"

#include "backlog/file.h"
#include "backlog/work_tasks.h"

#include <algorithm>

namespace purlin::backlog {

Result<std::vector<RankedTask>> read(const std::string& cache_directory, Log& log) {
  PURLIN_ASSIGN(std::vector<Task> tasks, open_tasks(cache_directory));
  const Result<WorkList> list = WorkList::read(cache_directory);
  if (!list.is_ok()) {
    log.warn("{}", list.status().message());
    return ranked(std::move(tasks));
  }
  PURLIN_ASSIGN(const cache::Store store, cache::Store::open(cache_directory));
  WorkTasks of_programs = work_tasks(*list, store);
  for (const std::string& line : of_programs.left_out)
    log.info("no task, for no known spec computes what programs ask for: {}", line);
  for (Task& task : of_programs.tasks) {
    const auto queued = std::find_if(tasks.begin(), tasks.end(),
                                     [&](const Task& other) { return other.key == task.key; });
    if (queued == tasks.end()) {
      task.first_queued_at = task.queued_at;
      tasks.push_back(std::move(task));
      continue;
    }
    queued->launches = std::max(queued->launches, task.launches);
    if (queued->launch_ns <= 0) queued->launch_ns = task.launch_ns;
  }
  return ranked(std::move(tasks));
}

}  // namespace purlin::backlog
