// SPDX-License-Identifier: Apache-2.0
#include "cli/work_backlog.h"

#include "cache/store/store.h"
#include "runtime/work_list.h"

#include <algorithm>

namespace purlin::cli {

Result<std::vector<cache::Task>> all_tasks(Context& context, const std::string& cache_directory) {
  PURLIN_ASSIGN(std::vector<cache::Task> tasks, cache::open_tasks(cache_directory));
  const Result<runtime::WorkList> list = runtime::WorkList::read(cache_directory);
  if (!list.is_ok()) {
    context.log.warn("{}", list.status().message());
    return tasks;
  }
  PURLIN_ASSIGN(const cache::Store store, cache::Store::open(cache_directory));
  for (cache::Task& task : runtime::work_tasks(*list, store)) {
    const auto queued = std::find_if(tasks.begin(), tasks.end(), [&](const cache::Task& other) {
      return other.id() == task.id();
    });
    if (queued == tasks.end())
      tasks.push_back(std::move(task));
    else
      queued->launches = std::max(queued->launches, task.launches);
  }
  return tasks;
}

}  // namespace purlin::cli
