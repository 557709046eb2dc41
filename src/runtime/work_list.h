// SPDX-License-Identifier: Apache-2.0
// WorkList: what programs asked of the cache, how often, and whether it had an answer: the tuning
// work list. It lies beside the config cache (worklist.json, docs/formats/worklist.md).
//
// Bounded: beyond kMaxRows a new row takes the place of the lightest and inherits its weight as a
// possible error (space-saving, runtime/top_k.h), so that lists merge and the heavy rows stay.
// Thread-safety: a value type; merge_into is safe between threads and processes. Failure: kIo;
// kCorrupt for a damaged or newer file, which is never overwritten.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "cache/backlog.h"
#include "cache/entry/key.h"
#include "cache/store/store.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace purlin::runtime {

struct WorkRow {
  cache::CacheKey key;       // as it was looked up; bucket: where no rules are known, the shape
  std::string entry;         // id of the key that was served; "" on a miss
  std::string shape;         // one that was asked for
  std::string spec;          // path of the kernel's spec; "" where the program did not say
  std::uint64_t misses = 0;  // launches that had no entry
  std::uint64_t hits = 0;    // launches that had one of this very environment
  std::uint64_t stale = 0;   // launches served by one of another driver or toolkit
  std::uint64_t error = 0;   // how many launches of other rows this may stand for
  std::string last_seen;     // RFC 3339

  std::uint64_t launches() const { return misses + hits + stale; }
  std::uint64_t weight() const { return launches() + error; }
  // What makes two rows one: the entry served, else the key.
  std::string id() const { return entry.empty() ? key.id() : entry; }
};

class WorkList {
 public:
  static constexpr std::size_t kMaxRows = 1024;

  static std::string path(const std::string& cache_directory);
  // Empty where there is no file.
  static Result<WorkList> read(const std::string& cache_directory);
  // Adds `rows` to the file, under a lock, whole or not at all.
  static Status merge_into(const std::string& cache_directory, const std::vector<WorkRow>& rows);

  void add(const WorkRow& row);
  const std::vector<WorkRow>& rows() const { return rows_; }
  Json document() const;
  static Result<WorkList> from_document(const Json& document);

 private:
  std::vector<WorkRow> rows_;
  std::map<std::string, std::size_t> by_id_;
};

// The tasks that follow from the list, heaviest first: "tune" for what has no entry yet in `store`,
// "validate" for entries that were measured under another driver or toolkit. What was tuned since
// is left out.
std::vector<cache::Task> work_tasks(const WorkList& list, const cache::Store& store);

// Launches by id of the key served: whom to verify first.
std::map<std::string, std::uint64_t> hot_entries(const WorkList& list);

}  // namespace purlin::runtime
