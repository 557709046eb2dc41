// SPDX-License-Identifier: Apache-2.0
// Store: the config cache in a local directory.
//
// One append-only file, entries.log, of checksummed records (cache/record_log.h); the newest record
// of a key is its entry, older ones are its history. Writers of any number of processes append
// under a file lock and sync before they return; readers take no lock, write nothing and see whole
// records only. A directory that does not exist is an empty cache. Thread-safety: a Store belongs
// to one thread; several may be open on one directory, in any process.
#pragma once

#include "base/status.h"
#include "cache/entry.h"
#include "cache/record_log.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::cache {

enum class Outcome { kExact, kBucket, kTransferred, kMiss };
std::string_view outcome_name(Outcome outcome);  // "exact", "bucket", "transferred", "miss"

struct Lookup {
  Outcome outcome = Outcome::kMiss;
  std::optional<Entry> entry;
  // A line for each field of the key against the entry served or, on a miss, the nearest there is.
  std::vector<std::string> explain;
};

struct LookupOptions {
  // Serve an entry of another device model (same arch), toolkit or driver where no other is found.
  bool allow_transferred = false;
};

// An entry as it came to the store; `sequence` grows with every record.
struct StoredEntry {
  Entry entry;
  std::uint64_t sequence = 0;
};

class Store {
 public:
  // Reads what is there and writes nothing. kIo when it cannot be read, kCorrupt when the file is
  // of a newer version or not a cache.
  static Result<Store> open(const std::string& directory);
  // PURLIN_CACHE, else the user's cache directory + "/configs".
  static std::string default_directory();

  // Durable once it returns ok. Creates the directory if need be. kInvalid for an entry that could
  // not be read back.
  Status put(const Entry& entry);
  // Ok when put could work; creates the directory. Worth asking before hours of tuning.
  Status check_writable();
  // `problem` tells an exact hit from a bucket hit.
  Lookup get(const CacheKey& key, const ProblemShape& problem,
             const LookupOptions& options = {}) const;
  // The newest entry of every key, ordered by op, kernel, backend, arch, bucket.
  std::vector<Entry> list() const;
  // Every entry stored under a key, oldest first.
  Result<std::vector<Entry>> history(const CacheKey& key) const;
  // Rereads what other processes appended since.
  Status refresh();

  const std::string& directory() const { return directory_; }
  const std::unordered_map<std::string, StoredEntry>& entries() const { return entries_; }
  // Of the newest record read; and how often the file was found replaced.
  std::uint64_t sequence() const { return sequence_; }
  std::uint64_t generation() const { return generation_; }
  // Records that failed their checksum or could not be read, and were skipped.
  std::size_t damaged() const { return log_.damaged() + unreadable_; }
  // Records of a newer Purlin, skipped.
  std::size_t newer() const { return newer_; }

 private:
  explicit Store(std::string directory);
  void visit(const Record& record);
  void restart();

  std::string directory_;
  RecordLog log_;
  std::unordered_map<std::string, StoredEntry> entries_;                 // by key id
  std::unordered_map<std::string, std::vector<std::uint64_t>> offsets_;  // by key id, in the log
  std::uint64_t sequence_ = 0, generation_ = 0;
  std::size_t unreadable_ = 0, newer_ = 0;
};

}  // namespace purlin::cache
