// SPDX-License-Identifier: Apache-2.0
// Lookup: which entry of a record_set represents a launch, and why. One implementation of the rules
// for every reader of a store: exact, bucket, nearest, transferred, miss (docs/formats/cache.md).
// Value types and a pure function of its arguments. Cannot fail: records that cannot be read are
// skipped.
#pragma once

#include "cache/entry/entry.h"
#include "cache/store/record_set.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::cache {

enum class Outcome { kExact, kBucket, kNearest, kTransferred, kMiss };
// "exact", "bucket", "nearest", "transferred", "miss"
std::string_view outcome_name(Outcome outcome);

struct Lookup {
  Outcome outcome = Outcome::kMiss;
  std::optional<Entry> entry;
  std::string record;      // Id of the entry's record.
  std::string decided_by;  // On a miss: the field of the key, or "status", "problem", "nothing".
  std::string layer;       // The store of the entry, if the lookup asked several.
  std::string withdrawn;   // Id of the entry's record that only its status excluded.
  std::vector<std::string> damaged;  // Ids of records that were to be read and could not be.
  // A line for each field of the key against the entry served or, on a miss, the nearest there is.
  std::vector<std::string> explain;
};

struct LookupOptions {
  // Serve an entry of another device model (same arch), toolkit or driver where no other is found.
  bool allow_transferred = false;
  // Serve the entry of another bucket whose measured shape is at most this far away: the sum over
  // the dimensions of |log2(wanted / measured)|. 0 = no.
  double nearest = 0;
  // Whether an entry record is served, where more than the record_set's own statuses decide that.
  std::function<bool(const Id128& record)> served;
  // Likewise whether it was checked again under a toolkit and driver, given as field_hash()es.
  std::function<bool(const Id128& record, std::uint32_t toolkit, std::uint32_t driver)> validated;
};

struct LookupSource {
  const RecordSet& record_set;
  std::function<Result<Entry>(const EntrySummary&)> entry;
  std::function<Result<EntryStatus>(const StatusSummary&)> status;
};
Lookup look_up(const LookupSource& source, const CacheKey& key, const ProblemShape& problem,
               const LookupOptions& options);

// Sum over the dimensions of |log2(a / b)|; infinite where the dimensions differ.
double shape_distance(const ProblemShape& a, const ProblemShape& b);

}  // namespace purlin::cache
