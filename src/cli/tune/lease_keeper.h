// SPDX-License-Identifier: Apache-2.0
// LeaseKeeper: holds one lease of the shared backlog while its task is tuned. A separate
// thread renews it; where it is lost, or Ctrl-C comes, `stop` becomes true and the session ends.
//
// One owner; `stop` [MT]. A server that cannot be reached for a while is no loss: only an answer
// is, or the end of the lease. Without end() the lease is given back. Failure: end() says that the
// result does not count (kCancelled).
#pragma once

#include "base/log.h"
#include "fleet/backlog/lease_source.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace purlin::cli {

class LeaseKeeper {
 public:
  // `seconds`: how long a lease lasts without a renewal. Source and log outlive it.
  LeaseKeeper(fleet::LeaseSource& source, const backlog::Lease& lease, double seconds, Log& log);
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

  const std::atomic<bool>& stop() const { return stop_; }
  bool lost() const { return lost_.load(); }
  Status end(fleet::TaskEnd how, const std::string& outcome);

 private:
  void renew();
  void join();

  fleet::LeaseSource& source_;
  const std::string id_;
  const std::int64_t token_;
  const double seconds_;
  Log& log_;
  const std::int64_t start_ns_;
  std::atomic<bool> stop_{false}, lost_{false};
  bool joining_ = false;  // under the mutex
  bool ended_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace purlin::cli
