// SPDX-License-Identifier: Apache-2.0
// Converts recordings for a strategy: their configs become configs of the current space.
//
// Configs are found by the names and values of the space's parameters. A recording may lack a
// parameter for which the space has exactly one value. Parameters that the space lacks are ignored.
// Pure functions.
#pragma once

#include "gpu/replay/recording.h"
#include "model/device/device.h"
#include "tune/search/prior.h"
#include "tune/space/space.h"

#include <string>
#include <vector>

namespace purlin::tune {

// What a session was given to start from, for its report.
struct PriorSource {
  std::string name;  // "gemm-A100.json.gz", "stored evaluations", "cache entry"
  std::string device, shape, toolkit;
  std::size_t configs = 0, failed = 0;  // found in the space
  std::size_t left_out = 0;             // not configs of the space
};

struct Priors {
  std::vector<PriorRun> runs;  // the nearest first; those with a config of the space
  std::vector<PriorSource> sources;
};

class PriorReader {
 public:
  // The space and what it is tuned for; all outlive the reader.
  PriorReader(const Space& space, const DeviceInfo& device, const ProblemShape& problem);
  void add(const gpu::Recording& recording, const std::string& name);
  // At most `at_most` runs, the nearest first.
  Priors take(std::size_t at_most = 32);

 private:
  const Space& space_;
  const DeviceInfo& device_;
  const ProblemShape& problem_;
  std::vector<std::pair<PriorRun, PriorSource>> found_;
};

}  // namespace purlin::tune
