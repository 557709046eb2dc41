// SPDX-License-Identifier: Apache-2.0
// Entry: a winner, with what makes it believable: its distribution, its margin over the runner-up,
// who measured it where and when, and whether it was verified. docs/formats/cache.md has the
// schema. Thread-safety: a value type.
#pragma once

#include "cache/entry/bucket.h"
#include "cache/entry/constraint_cache.h"
#include "cache/entry/key.h"
#include "model/evaluation.h"

#include <string>
#include <vector>

namespace purlin::cache {

struct Entry {
  CacheKey key;
  Config config;
  ProblemShape problem;  // the shape it was measured at
  // The shapes that the entry represents. With them a program finds it without the spec.
  BucketRules bucket_rules;
  // What the config must satisfy at another shape of the bucket: the spec's constraints that name a
  // dimension; and the values of the device's facts they name (cache/entry/shape_check.h).
  std::vector<std::string> shape_constraints;
  Config facts;
  double time_ms = 0;  // median; 0 = not measured
  std::vector<Sample> samples;
  double default_time_ms = 0;  // the default config's median in the same session; 0 = not measured
  double runner_up_ms = 0;     // 0 = none
  Config default_config, runner_up;  // those two configs; empty where not known
  std::vector<Config> ties;          // configs within noise of the winner
  // What the bucket costs: another shape of it -> this config's time over that shape's own best.
  std::vector<std::pair<ProblemShape, double>> bucket_regret;
  int evaluations = 0;    // how many configs the search measured
  bool verified = false;  // outputs were checked against the reference
  std::string
      reference;  // "default": that was the kernel's own default config; "" = another kernel
  std::string tool_version, host, user, recorded_at;
  std::string strategy;  // what found it: "exhaustive", …; "put" when a person stored it
};

// Who measures: for provenance. "" where the system does not say.
std::string host_name();
std::string user_name();
// "user@host"; of what is known of the two.
std::string author_text(const std::string& user, const std::string& host);

// An entry with its key, problem, bucket rules, shape constraints and provenance filled in; the
// rest is the caller's.
Result<Entry> new_entry(const KernelSpec& spec, const ProblemShape& problem,
                        const DeviceInfo& device, bool cold_cache);

Json to_json(const Entry& entry);
// kInvalid names the member that is wrong; kCorrupt when written by a newer Purlin.
Result<Entry> entry_from_json(const Json& json);
enum class EntryParts {
  kAll,
  kServed,  // what lookups need: without samples, ties, regret and who found it how
};
Result<Entry> entry_from_json(const JsonView& json, EntryParts parts, ConstraintCache& constraints);

}  // namespace purlin::cache
