// SPDX-License-Identifier: Apache-2.0
// StoreGate: the one Store of a server, for its many threads.
//
// A separate thread has the Store. Batches that wait together are one commit, so a disk that
// syncs slowly carries many agents. Each question takes a Reader from a pool, so questions wait
// neither for writes nor for each other. [MT] all methods; they return when it is done. Memory is
// bounded by the callers: each waits for its own batch. Failure: the store's.
#pragma once

#include "base/status.h"
#include "store/store.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace purlin::fleet {

class StoreGate {
 public:
  explicit StoreGate(std::unique_ptr<store::Store> store);
  // What waits is still done.
  ~StoreGate();
  StoreGate(const StoreGate&) = delete;
  StoreGate& operator=(const StoreGate&) = delete;

  // Durable when it returns.
  Result<store::Ingest> ingest(store::HashedBatch batch);
  // On the store's thread.
  Status write(std::function<Status(store::Store&)> what);
  // On the caller's thread.
  Status read(const std::function<Status(store::Reader&)>& what);

  struct Counts {
    std::uint64_t commits = 0, batches = 0, waiting = 0;
  };
  Counts counts() const;

 private:
  struct Job {
    std::optional<store::HashedBatch> batch;  // else `what`
    std::function<Status(store::Store&)> what;
    Result<store::Ingest> ingested = Status(Code::kCancelled, "the server stops");
    Status status;
    bool done = false;
  };
  void run();
  void do_batches(const std::vector<Job*>& jobs);
  void wait_for(Job& job);

  std::unique_ptr<store::Store> store_;
  mutable std::mutex mutex_;
  std::condition_variable queued_, done_;
  std::deque<Job*> queue_;  // under the mutex
  bool stop_ = false;
  std::uint64_t commits_ = 0, batches_ = 0;
  std::mutex readers_mutex_;
  std::vector<std::unique_ptr<store::Reader>> readers_;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace purlin::fleet
