// SPDX-License-Identifier: Apache-2.0
// CacheApi: the shared caches that a server keeps, one folder of objects each, and what a client
// may do with them (docs/formats/server.md).
//
// Objects are those of a shared cache (docs/formats/share.md), and it is seen to that they are: a
// segment's bytes have the hash that is its name, the index can be read, nothing is overwritten
// unless by compare-and-swap. So the folder of a cache is a share of its own, which
// `purlin cache pull FOLDER` reads. [MT]: `answer`. Failure: as an answer's status; nothing throws.
#pragma once

#include "fleet/http.h"
#include "fleet/route.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace purlin::fleet {

struct CacheApiOptions {
  std::string directory;          // DIRECTORY/NAME is a cache; made when first written
  std::uint64_t quota_bytes = 0;  // of all segments; 0 = none
};

class CacheApi {
 public:
  // Counts what is stored. kIo where the directory cannot be made or read.
  static Result<CacheApi> open(CacheApiOptions options);
  CacheApi(CacheApi&& other) noexcept;

  HttpAnswer answer(const Route& route, const HttpHead& head, const std::string& body);

  std::uint64_t stored_bytes() const { return stored_.load(); }  // [MT]
  const CacheApiOptions& options() const { return options_; }

 private:
  explicit CacheApi(CacheApiOptions options) : options_(std::move(options)) {}
  std::string folder(const std::string& cache) const;
  HttpAnswer list_caches() const;
  HttpAnswer describe(const std::string& cache) const;
  HttpAnswer list(const Route& route) const;
  HttpAnswer get(const Route& route) const;
  HttpAnswer put(const Route& route, const HttpHead& head, const std::string& body);
  HttpAnswer remove(const Route& route);

  CacheApiOptions options_;
  std::atomic<std::uint64_t> stored_{0};
  std::mutex removals_;  // each object's size is taken off once
};

// {"schema": "purlin.error/1", …}
HttpAnswer error_answer(int status, std::string_view message);
HttpAnswer error_answer(const Status& status);

}  // namespace purlin::fleet
