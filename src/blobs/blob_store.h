// SPDX-License-Identifier: Apache-2.0
// BlobStore: named objects that machines share: a directory, an S3-compatible bucket, or a
// cache of a Purlin server.
//
// Objects are written once, or replaced by compare-and-swap on their tag; nothing else is offered,
// so that no writer can lose another's update. Keys are relative paths of [A-Za-z0-9._-] parts. A
// store is used by one thread; several, in any process on any machine, may share one target.
// Failure: kNotFound (get), kUnavailable and kTimeout (no answer, also after retries), kIo,
// kInvalid (the target or what it answers is not usable; the text says what to do).
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::blobs {

struct Blob {
  std::string bytes;
  std::string tag;  // changes with the contents; opaque
};

struct BlobInfo {
  std::string key;
  std::uint64_t size = 0;
  // When it was written, by this machine's wall clock: where a store tells its own time with the
  // listing (S3's Date, a server's now_ns), its times are put right by the difference. 0 = unknown.
  std::int64_t modified_ns = 0;
};

enum class Put {
  kStored,
  kConflict,  // an object is there already, or is no longer the one of the tag
};

class BlobStore {
 public:
  virtual ~BlobStore() = default;
  // kInvalid for an object larger than `max_bytes`.
  virtual Result<Blob> get(const std::string& key, std::size_t max_bytes) = 0;
  // Durable when kStored. After a failure the object may be there or not. A kConflict can be this
  // call's own success, when the answer to a first attempt was lost: read the object to know.
  virtual Result<Put> put_if_absent(const std::string& key, std::string_view bytes) = 0;
  virtual Result<Put> put_if_match(const std::string& key, std::string_view bytes,
                                   const std::string& tag) = 0;
  // The objects directly below a folder ("segments/"), sorted by key.
  virtual Result<std::vector<BlobInfo>> list(const std::string& folder) = 0;
  // An object that is already gone is no error.
  virtual Status remove(const std::string& key) = 0;
  // For messages: "s3://bucket/prefix", "/mnt/share", "http://build7:8717/team".
  virtual std::string name() const = 0;
};

// A directory's path (created at the first put), s3://BUCKET/PREFIX, or http://HOST:PORT/NAME (or
// https://) of a Purlin server.
Result<std::unique_ptr<BlobStore>> open_blobs(const std::string& target);

// Ok, or kInvalid for what no store would take.
Status check_key(std::string_view key);

}  // namespace purlin::blobs
