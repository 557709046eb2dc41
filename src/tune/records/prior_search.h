// SPDX-License-Identifier: Apache-2.0
// The results a session starts from, and the results it leaves. They come from files that the user
// names and from the directory of the cache: evaluations of earlier sessions, and entries.
//
// Free functions; the caller owns every argument. One thread. Failure: a file named by the user
// that cannot be read is an error. An unreadable file in the cache is skipped with a warning.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "model/spec/spec.h"
#include "tune/records/prior_runs.h"

#include <string>
#include <vector>

namespace purlin::tune {

struct PriorOptions {
  std::vector<std::string> files;  // results of other GPUs, shapes or versions
  bool from_cache = true;          // also read the cache's directory
};

// The kernel of a session, for finding similar results.
struct PriorTarget {
  const KernelSpec* spec = nullptr;  // nullptr: a recording, which the cache does not know
  const Space& space;
  const DeviceInfo& device;
  const ProblemShape& problem;
  bool cold_cache = false;
  std::string cache_directory;
};

Result<Priors> find_priors(const PriorOptions& options, const PriorTarget& target, Log& log);
// Writes the evaluations of a session into the cache's directory, for later sessions.
// REQUIRES: target.spec.
Status keep_evaluations(const PriorTarget& target, const std::vector<Evaluation>& evaluations);

}  // namespace purlin::tune
