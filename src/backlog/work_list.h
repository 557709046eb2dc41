// SPDX-License-Identifier: Apache-2.0
// WorkList: the cache lookups of programs, counted by key, and whether each had an entry. It is
// worklist.json next to the config cache (docs/formats/worklist.md).
//
// Bounded: beyond kMaxRows a new row replaces the row with the smallest count and inherits that
// count as its possible error (space-saving, runtime/top_k.h). Lists merge, and the rows with the
// largest counts stay. Thread-safety: a value type; merge_into is safe between threads and
// processes. Failure: kIo; kCorrupt for a damaged or newer file, which is never overwritten.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "cache/entry/key.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace purlin::backlog {

struct WorkRow {
  cache::CacheKey key;       // Of the lookup; without bucket rules, its bucket is the shape.
  std::string entry;         // Id of the key that was served; "" on a miss.
  std::string shape;         // The latest that was requested.
  std::string spec;          // Path of the kernel's spec; "" if not known.
  std::uint64_t misses = 0;  // Launches without an entry.
  std::uint64_t hits = 0;    // Launches with an entry of the same environment.
  std::uint64_t stale = 0;   // Launches with an entry of another driver or toolkit.
  std::uint64_t error = 0;   // Maximum count that belongs to other rows.
  std::string last_seen;     // RFC 3339.

  std::uint64_t launches() const { return misses + hits + stale; }
  std::uint64_t weight() const { return launches() + error; }
  // Rows with the same id are one row: the served entry, else the key.
  std::string id() const { return entry.empty() ? key.id() : entry; }
};

class WorkList {
 public:
  static constexpr std::size_t kMaxRows = 1024;

  static std::string path(const std::string& cache_directory);
  // Empty without a file.
  static Result<WorkList> read(const std::string& cache_directory);
  // Adds all `rows` to the file under a lock. On failure the file is unchanged.
  static Status merge_into(const std::string& cache_directory, const std::vector<WorkRow>& rows);

  void add(const WorkRow& row);
  const std::vector<WorkRow>& rows() const { return rows_; }
  Json document() const;
  static Result<WorkList> from_document(const Json& document);

 private:
  std::vector<WorkRow> rows_;
  std::map<std::string, std::size_t> by_id_;
};

// Launches by the id of the served key: the entries with the most are verified first.
std::map<std::string, std::uint64_t> hot_entries(const WorkList& list);

}  // namespace purlin::backlog
