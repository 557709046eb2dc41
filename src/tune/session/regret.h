// SPDX-License-Identifier: Apache-2.0
// What a fresh winner's bucket costs, measured: at some of its other shapes the winner is held
// against the best that a short search finds there (`purlin tune --bucket-regret`). Owned by the
// verb's Command; one thread. Failure: of the device or a worker; a shape at which nothing works is
// left out with a word.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "cache/entry/entry.h"
#include "measure/timing.h"
#include "model/spec/spec.h"
#include "tune/session/budget.h"
#include "tune/session/worker_pool.h"

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::cli {

struct RegretOptions {
  std::size_t shapes = 0;  // how many, at most
  tune::Budget budget;     // of the search at each
  measure::Policy policy;
  int finals = 0;
  std::uint64_t seed = 1;
  std::string device, binary_cache;
  tune::PoolOptions pool;
};

// Fills in entry.bucket_regret. `known`: the evaluations of the session that found the winner, from
// which each search starts.
Status measure_regret(const KernelSpec& spec, const std::vector<Evaluation>& known,
                      const RegretOptions& options, Log& log, cache::Entry& entry);

}  // namespace purlin::cli
