// SPDX-License-Identifier: Apache-2.0
// CacheApi: the shared caches that a server keeps, one folder of objects each, and what a client
// may do with them (docs/formats/server.md).
//
// Objects are those of a shared cache (docs/formats/share.md), and it is seen to that they are: a
// segment's bytes have the hash that is its name, the index can be read, nothing is overwritten
// unless by compare-and-swap. So the folder of a cache is a share of its own, which
// `purlin cache pull FOLDER` reads, and others may write there, too: what is stored is counted anew
// now and then. [MT] every method. Failure: as an answer's status; nothing throws.
#pragma once

#include "base/status.h"
#include "base/time.h"
#include "fleet/http.h"
#include "fleet/route.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

namespace purlin::fleet {

struct CacheApiOptions {
  std::string directory;          // DIRECTORY/NAME is a cache; made when first written
  std::uint64_t quota_bytes = 0;  // of all objects; 0 = none
};

// Bytes that are stored or about to be. [MT]
class StoredBytes {
 public:
  // Adds them if they then are at most `quota` (0: no limit).
  bool reserve(std::uint64_t bytes, std::uint64_t quota);
  void add(std::uint64_t bytes) { bytes_.fetch_add(bytes); }
  // Never below 0: what others stored may not have been counted.
  void release(std::uint64_t bytes);
  void set(std::uint64_t bytes) { bytes_.store(bytes); }
  std::uint64_t get() const { return bytes_.load(); }

 private:
  std::atomic<std::uint64_t> bytes_{0};
};

class CacheApi {
 public:
  // Tends for the first time. kIo where the directory cannot be made or read. `clock` outlives it.
  static Result<std::unique_ptr<CacheApi>> open(CacheApiOptions options, Clock& clock);
  CacheApi(const CacheApi&) = delete;
  CacheApi& operator=(const CacheApi&) = delete;

  HttpAnswer answer(const Route& route, const HttpHead& head, const std::string& body);
  // Counts what is stored, as others may have come and gone, and removes what writes left that were
  // killed over an hour ago.
  Status tend();

  std::uint64_t stored_bytes() const { return stored_.get(); }
  const CacheApiOptions& options() const { return options_; }
  // What an object of that key may have; kInvalid: it is none of a shared cache.
  static Result<std::uint64_t> max_bytes(std::string_view key);

 private:
  CacheApi(CacheApiOptions options, Clock& clock) : options_(std::move(options)), clock_(clock) {}
  std::string folder(const std::string& cache) const;
  HttpAnswer failure(const Status& status, int io_status) const;
  Status tend_folder(const std::string& folder, std::uint64_t* stored) const;
  bool reserve(std::uint64_t bytes, std::shared_lock<std::shared_mutex>* changing);
  HttpAnswer store(const Route& route, const std::string& match, const std::string& body);
  HttpAnswer list_caches() const;
  HttpAnswer describe(const std::string& cache) const;
  HttpAnswer list(const Route& route) const;
  HttpAnswer get(const Route& route) const;
  HttpAnswer put(const Route& route, const HttpHead& head, const std::string& body);
  HttpAnswer remove(const Route& route);

  const CacheApiOptions options_;
  Clock& clock_;
  StoredBytes stored_;
  std::shared_mutex tending_;  // shared: objects change; alone: they are counted
  std::mutex removals_;        // each object's size is taken off once
  std::atomic<std::int64_t> tended_ns_{0};
};

// {"schema": "purlin.error/1", …}
HttpAnswer error_answer(int status, std::string_view message);
HttpAnswer error_answer(const Status& status);

}  // namespace purlin::fleet
