// SPDX-License-Identifier: Apache-2.0
// The endpoints of the shared backlog: GET /v1/backlog, POST /v1/backlog/lease, heartbeat and done
// (docs/formats/server.md). Several threads share one file of leases under a lock.
//
// [MT]; the backlog outlives its endpoints. Failure: as an answer's status: 410 where a lease is
// lost.
#pragma once

#include "backlog/leases.h"
#include "base/time.h"
#include "fleet/endpoint.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace purlin::fleet {

class SharedBacklog {
 public:
  SharedBacklog(backlog::Leases leases, Clock& clock) : leases_(std::move(leases)), clock_(clock) {}

  // Calls `use(leases, now_ns)` under the lock.
  template <class Use>
  auto with(Use use) {
    const std::lock_guard lock(mutex_);
    return use(leases_, clock_.wall_ns());
  }
  // Tasks by state, and GPU time spent on tuning today, for Prometheus.
  std::string metrics();

 private:
  std::mutex mutex_;
  backlog::Leases leases_;
  Clock& clock_;
};

std::vector<Endpoint> backlog_endpoints(SharedBacklog& shared);

}  // namespace purlin::fleet
