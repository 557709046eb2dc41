// SPDX-License-Identifier: Apache-2.0
// Every task there is beside a config cache: what was queued (cache/backlog.h), and what follows
// from what programs asked for (runtime/work_list.h).
//
// A work list that cannot be read is a warning, and the queued tasks stand. Failure: kIo, kCorrupt.
#pragma once

#include "cache/backlog.h"
#include "cli/frame/command.h"

#include <string>
#include <vector>

namespace purlin::cli {

// Queued tasks first, largest slowdown first, then the rest by launches.
Result<std::vector<cache::Task>> all_tasks(Context& context, const std::string& cache_directory);

}  // namespace purlin::cli
