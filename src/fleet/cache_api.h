// SPDX-License-Identifier: Apache-2.0
// CacheApi: the shared caches that a server keeps, one folder of objects each, and what a client
// may do with them (docs/formats/server.md).
//
// Objects are those of a shared cache (docs/formats/share.md). CacheApi checks them: a segment's
// bytes have the hash that is its name, and the index can be read. Only a compare-and-swap
// overwrites an object. So the folder of a cache is a complete share, which
// `purlin cache pull FOLDER` reads. Other programs can write there, too: CacheApi counts the stored
// bytes again at intervals, and this delays no request. [MT] every method. Failure: as an answer's
// status; nothing throws.
#pragma once

#include "base/status.h"
#include "base/time.h"
#include "fleet/endpoint.h"
#include "fleet/http.h"
#include "fleet/route.h"
#include "fleet/stored_bytes.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::fleet {

struct CacheApiOptions {
  std::string directory;          // DIRECTORY/NAME is a cache; made when first written
  std::uint64_t quota_bytes = 0;  // of all objects; 0 = none
};

class CacheApi {
 public:
  // Tends for the first time. kIo where the directory cannot be made or read. `clock` outlives it.
  static Result<std::unique_ptr<CacheApi>> open(CacheApiOptions options, Clock& clock);
  CacheApi(const CacheApi&) = delete;
  CacheApi& operator=(const CacheApi&) = delete;

  HttpAnswer answer(const Route& route, const HttpHead& head, const std::string& body);
  // Counts what is stored, as others may have come and gone, and removes what writes left that were
  // killed over an hour ago, and probes as old.
  Status tend();
  // One under way, and each one from now on, ends soon and counts no more.
  void stop_tending() { stopping_.store(true); }

  std::uint64_t stored_bytes() const { return stored_.get(); }
  const CacheApiOptions& options() const { return options_; }
  Clock& clock() const { return clock_; }
  // What an object of that key may have; kInvalid: it is none of a shared cache.
  static Result<std::uint64_t> max_bytes(std::string_view key);

 private:
  CacheApi(CacheApiOptions options, Clock& clock);
  std::string folder(const std::string& cache) const;
  HttpAnswer failure(const Status& status, int io_status) const;
  Status tend_alone();
  Result<std::vector<blobs::BlobInfo>> tend_folder(const std::string& folder);
  bool begin(const std::string& object, std::uint64_t bytes, std::uint64_t quota);
  std::mutex& index_lock(const std::string& cache);
  Result<bool> lists(const std::string& cache, std::string_view segment);
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
  std::mutex tending_;
  std::atomic<std::int64_t> tended_ns_{0}, tend_again_ns_{0};
  std::atomic<bool> stopping_{false};
  // Between a look at a cache's index and the removal of what it does not list no index is stored.
  // Some for all caches, by their names' hashes.
  std::array<std::mutex, 64> index_locks_;
  // The segments in the index that was read last: a client that tidies up a cache removes one
  // segment after the other.
  struct Listed {
    std::string cache;
    std::array<std::int64_t, 6> stamp{};  // of the index' file
    std::vector<std::string> segments;    // sorted
  };
  std::mutex listed_mutex_;
  Listed listed_;
};

std::string cache_metrics(const CacheApi& api);
// `api` outlives them.
std::vector<Endpoint> cache_endpoints(CacheApi& api);

}  // namespace purlin::fleet
