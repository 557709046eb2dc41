// SPDX-License-Identifier: Apache-2.0
// The regret of a bucket: how much slower its winner is than the best config at other shapes of the
// bucket (`purlin tune --bucket-regret`). A short search at each shape finds the best config there.
//
// Free function; the caller owns every argument. One thread. Failure: of the device or a worker. A
// shape without a working config is left out with a warning.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "cache/entry/entry.h"
#include "measure/timing.h"
#include "model/spec/spec.h"
#include "tune/session/budget.h"
#include "tune/session/worker_pool.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace purlin::tune {

struct RegretOptions {
  std::size_t shapes = 0;  // maximum number of them
  Budget budget;           // of the search at each shape
  measure::Policy policy;
  int finals = 0;
  std::uint64_t seed = 1;
  std::string device, binary_cache;
  PoolOptions pool;
  const std::atomic<bool>* stop = nullptr;  // ends the searches
};

// Fills in entry.bucket_regret. `known` holds the evaluations of the session that found the winner;
// each search starts from them.
Status measure_regret(const KernelSpec& spec, const std::vector<Evaluation>& known,
                      const RegretOptions& options, Log& log, cache::Entry& entry);

}  // namespace purlin::tune
