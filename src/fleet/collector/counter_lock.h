// SPDX-License-Identifier: Apache-2.0
// CounterLock: the right of one process to the hardware counters of a node's GPUs, which the driver
// gives to one client. dcgm-exporter is paused while it is held.
//
// A lock file, and a marker next to it while DCGM is paused. A holder that is killed leaves the
// marker: resume_abandoned(), which a collector calls in each period, then resumes DCGM. Owner: one
// process, one thread. Failure: kUnavailable (another process holds it), kFailed (DCGM does not
// pause). A node without DCGM has nothing to pause.
#pragma once

#include "base/files.h"
#include "base/status.h"

#include <memory>
#include <string>
#include <vector>

namespace purlin::fleet {

struct CounterLockOptions {
  std::string folder = "/run/purlin";
  std::vector<std::string> pause = {"dcgmi", "profile", "--pause"};
  std::vector<std::string> resume = {"dcgmi", "profile", "--resume"};
  double wait_s = 60;
};

class CounterLock {
 public:
  static Result<CounterLock> acquire(CounterLockOptions options = {});
  CounterLock(CounterLock&& other) noexcept = default;
  CounterLock& operator=(CounterLock&&) = delete;
  ~CounterLock();
  // Of a holder that no longer exists. False: there is none.
  static Result<bool> resume_abandoned(const CounterLockOptions& options = {});

 private:
  CounterLock(CounterLockOptions options, FileLock lock)
      : options_(std::move(options)), lock_(std::make_unique<FileLock>(std::move(lock))) {}
  CounterLockOptions options_;
  std::unique_ptr<FileLock> lock_;  // null: moved from
};

}  // namespace purlin::fleet
