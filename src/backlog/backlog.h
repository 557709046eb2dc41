// SPDX-License-Identifier: Apache-2.0
// The whole backlog of a config cache, ranked: the queued tasks (file.h) and those that follow from
// the lookups of programs (work_tasks.h).
//
// A work list that cannot be read is a warning in the log, and the queued tasks are returned.
// Free functions, thread-safe. Failure: kIo, kCorrupt.
#pragma once

#include "backlog/order.h"
#include "base/log.h"
#include "base/status.h"

#include <string>
#include <vector>

namespace purlin::backlog {

// A task of both sources is one task, with the larger count of launches.
Result<std::vector<RankedTask>> read(const std::string& cache_directory, Log& log);

}  // namespace purlin::backlog
