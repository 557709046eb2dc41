// SPDX-License-Identifier: Apache-2.0
// RawShelf: the object store of a server's raw profiles, for its many threads; and the endpoints
// that store one under its hash, give it back, and list the pointers.
//
// [MT]; gate and shelf outlive the endpoints. An object store belongs to one thread at a time, so
// each use takes one from a pool. Failure: as an answer's status (docs/formats/server.md).
#pragma once

#include "base/time.h"
#include "blobs/blob_store.h"
#include "fleet/api/store_gate.h"
#include "fleet/endpoint.h"
#include "store/raws.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace purlin::fleet {

class RawShelf {
 public:
  // `target`: as of blobs::open_blobs. It is opened with the first use.
  explicit RawShelf(std::string target, std::uint64_t max_bytes = std::uint64_t{64} << 20)
      : target_(std::move(target)), max_bytes_(max_bytes) {}
  Status use(const std::function<Status(blobs::BlobStore&)>& what);
  std::uint64_t max_bytes() const { return max_bytes_; }  // of one
  bool has(const std::string& sha256);                    // false also where it cannot be read

 private:
  const std::string target_;
  const std::uint64_t max_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<blobs::BlobStore>> idle_;
};

// The pointers that a question is about, the newest first: those that fit its place and, with a
// filter of launches such as `kernel`, whose node ran such launches in one of their hours.
Result<std::vector<store::RawInfo>> raws_for(store::Reader& reader, const store::Filter& filter);
Json raw_json(const store::RawInfo& raw);

// Each call waits for the store's thread no longer than its own write takes.
store::RawPointers pointers_of(StoreGate& gate);
// `stored` gets the hash of each raw profile that arrives. Where it fails, the node sends it again.
std::vector<Endpoint> raw_endpoints(
    RawShelf& shelf, StoreGate& gate, Clock& clock,
    const std::function<Status(const std::string& sha256)>& stored = nullptr);

}  // namespace purlin::fleet
