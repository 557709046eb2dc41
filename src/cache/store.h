// SPDX-License-Identifier: Apache-2.0
// Store: the config cache in a local directory.
//
// One append-only file, entries.log, of checksummed records; the newest record of a key is its
// entry, older ones are its history. Writers of any number of processes append under a file lock
// and fsync before they return; readers take no lock and see whole records only. A torn tail left
// by a crash is ignored by readers and cut off by the next writer. Layout: docs/formats/cache.md.
// Thread-safety: a Store belongs to one thread; several may be open on one directory, in any
// process.
#pragma once

#include "base/status.h"
#include "cache/entry.h"

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::cache {

enum class Outcome { kExact, kBucket, kTransferred, kMiss };
std::string_view outcome_name(Outcome outcome);  // "exact", "bucket", "transferred", "miss"

struct Lookup {
  Outcome outcome = Outcome::kMiss;
  std::optional<Entry> entry;
  std::vector<std::string> explain;  // a line for each field that decided
};

class Store {
 public:
  // Creates the directory if need be. kIo when it cannot be read; a file of a newer version is
  // refused.
  static Result<Store> open(const std::string& directory);
  // PURLIN_CACHE, else the user's cache directory + "/configs".
  static std::string default_directory();

  // Durable once it returns ok.
  Status put(const Entry& entry);
  // `problem` tells an exact hit from a bucket hit.
  Lookup get(const CacheKey& key, const ProblemShape& problem);
  // The newest entry of every key, ordered by op, kernel, bucket.
  std::vector<Entry> list();
  // Rereads what other processes appended since.
  Status refresh();
  const std::string& directory() const { return directory_; }
  // Records that failed their checksum and were skipped (not a torn tail).
  std::size_t damaged() const { return damaged_; }

 private:
  explicit Store(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
  std::unordered_map<std::string, Entry> entries_;  // by key id
  std::uint64_t read_to_ = 0;
  std::size_t damaged_ = 0;
};

}  // namespace purlin::cache
