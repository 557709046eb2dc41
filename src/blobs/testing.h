// SPDX-License-Identifier: Apache-2.0
// For tests alone: objects in memory that several "machines" share, and that fail on request.
#pragma once

#include "blobs/blob_store.h"

#include <functional>
#include <map>
#include <string>

namespace purlin::blobs {

// What is shared; each machine has a MemoryBlobs on it.
struct Memory {
  std::map<std::string, Blob> objects;
  std::map<std::string, std::int64_t> modified_ns;
  std::int64_t now_ns = 0;
  std::uint64_t writes = 0;
};

class MemoryBlobs : public BlobStore {
 public:
  explicit MemoryBlobs(Memory& memory) : memory_(memory) {}

  // Called before each operation ("get", "put", …) on a key; may change the memory, or fail it.
  std::function<Status(const std::string& operation, const std::string& key)> before;
  // A put that was stored is reported as failed so many times: its answer was lost.
  int lost_answers = 0;
  bool ignores_conditions = false;
  int gets = 0;

  Result<Blob> get(const std::string& key, std::size_t max_bytes) override {
    PURLIN_TRY(call("get", key));
    ++gets;
    const auto found = memory_.objects.find(key);
    if (found == memory_.objects.end()) return error(Code::kNotFound, "'{}' does not exist", key);
    if (found->second.bytes.size() > max_bytes) return error(Code::kInvalid, "too large");
    return found->second;
  }
  Result<Put> put_if_absent(const std::string& key, std::string_view bytes) override {
    PURLIN_TRY(call("put", key));
    if (!ignores_conditions && memory_.objects.count(key) > 0) return Put::kConflict;
    return store(key, bytes);
  }
  Result<Put> put_if_match(const std::string& key, std::string_view bytes,
                           const std::string& tag) override {
    PURLIN_TRY(call("put", key));
    const auto found = memory_.objects.find(key);
    if (!ignores_conditions && (found == memory_.objects.end() || found->second.tag != tag))
      return Put::kConflict;
    return store(key, bytes);
  }
  Result<std::vector<BlobInfo>> list(const std::string& folder) override {
    PURLIN_TRY(call("list", folder));
    std::vector<BlobInfo> found;
    for (const auto& [key, blob] : memory_.objects)
      if (key.rfind(folder, 0) == 0)
        found.push_back({key, blob.bytes.size(), memory_.modified_ns[key]});
    return found;
  }
  Status remove(const std::string& key) override {
    PURLIN_TRY(call("remove", key));
    memory_.objects.erase(key);
    return Status::ok();
  }
  std::string name() const override { return "memory"; }

 private:
  Status call(const std::string& operation, const std::string& key) {
    return before ? before(operation, key) : Status::ok();
  }
  Result<Put> store(const std::string& key, std::string_view bytes) {
    memory_.objects[key] = {std::string(bytes), std::to_string(++memory_.writes)};
    memory_.modified_ns[key] = memory_.now_ns;
    if (lost_answers > 0 && lost_answers-- > 0)
      return error(Code::kUnavailable, "the connection broke");
    return Put::kStored;
  }

  Memory& memory_;
};

}  // namespace purlin::blobs
