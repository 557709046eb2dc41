// SPDX-License-Identifier: Apache-2.0
// For tests alone: objects in memory that several "machines" share, and that fail on request; a
// service whose answers are written down.
#pragma once

#include "blobs/blob_store.h"
#include "blobs/http.h"

#include <deque>
#include <functional>
#include <map>
#include <string>

namespace purlin::blobs {

// What is shared; each machine has a MemoryBlobs on it.
struct Memory {
  std::map<std::string, Blob> objects;
  std::map<std::string, std::int64_t> modified_ns;
  std::int64_t now_ns = 1'000'000'000;  // as a FakeClock's
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

// Gives the scripted answers in turn and keeps what was asked.
struct Script {
  std::deque<Result<HttpResponse>> answers;
  std::vector<std::string> asked;  // "GET http://…"
  std::vector<HttpHeaders> headers;
  std::vector<double> timeouts_s;
  // Of the request of that number, from 0; "" where it had none.
  std::string header(std::size_t request, const std::string& wanted) const {
    for (const auto& [name, value] : headers.at(request))
      if (name == wanted) return value;
    return "";
  }
};

class ScriptedHttp : public HttpClient {
 public:
  explicit ScriptedHttp(Script& script) : script_(script) {}
  Result<HttpResponse> send(const HttpRequest& request) override {
    script_.asked.push_back(request.method + " " + request.url);
    script_.headers.push_back(request.headers);
    script_.timeouts_s.push_back(request.timeout_s);
    if (script_.answers.empty()) return error(Code::kUnavailable, "no more answers");
    auto answer = std::move(script_.answers.front());
    script_.answers.pop_front();
    return answer;
  }

 private:
  Script& script_;
};

inline HttpResponse answer(int status, std::string body = "", HttpHeaders headers = {}) {
  return {status, std::move(headers), std::move(body)};
}

}  // namespace purlin::blobs
