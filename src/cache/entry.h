// SPDX-License-Identifier: Apache-2.0
// Entry: a winner, with what makes it believable: its distribution, its margin over the runner-up,
// who measured it where and when, and whether it was verified. docs/formats/cache.md has the
// schema.
#pragma once

#include "cache/key.h"
#include "model/evaluation.h"

#include <string>
#include <vector>

namespace purlin::cache {

struct Entry {
  CacheKey key;
  Config config;
  ProblemShape problem;  // the shape it was measured at
  double time_ms = 0;    // median
  std::vector<Sample> samples;
  double default_time_ms = 0;  // the default config's median in the same session; 0 = not measured
  double runner_up_ms = 0;     // 0 = none
  std::vector<Config> ties;    // configs within noise of the winner
  int evaluations = 0;         // how many configs the search measured
  bool verified = false;       // outputs were checked against the reference
  std::string tool_version, host, user, recorded_at;
  std::string strategy;
};

Json to_json(const Entry& entry);
Result<Entry> entry_from_json(const Json& json);

}  // namespace purlin::cache
