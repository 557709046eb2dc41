// SPDX-License-Identifier: Apache-2.0
// What `purlin tune` starts from: files given, and what the cache's folder knows of the kernel; and
// what it leaves there for later sessions. Owned by the verb's Command; one thread. Failure: a file
// given that cannot be read is an error; in the cache's folder it is left out with a word.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "cli/frame/flags.h"
#include "cli/tune/target.h"
#include "tune/records/prior_runs.h"

#include <string>
#include <vector>

namespace purlin::cli {

struct TransferFlags {
  void declare(Flags& flags);
  // Whether `strategy` can use what was given.
  Status check(const std::string& strategy) const;

  std::vector<std::string> files;
  bool none = false;  // --no-transfer
};

// What a session is about, for finding what is alike.
struct TransferTarget {
  const KernelSpec* spec = nullptr;  // nullptr: a recording, of which the cache knows nothing
  const tune::Space& space;
  const DeviceInfo& device;
  const ProblemShape& problem;
  bool cold_cache = false;
};

Result<tune::Priors> find_priors(const TransferFlags& flags, const TransferTarget& target,
                                 const CacheFlag& cache, Log& log);
// Leaves a session's evaluations beside the cache.
Status keep_evaluations(const TransferTarget& target, const CacheFlag& cache,
                        const std::vector<Evaluation>& evaluations);

}  // namespace purlin::cli
