// SPDX-License-Identifier: Apache-2.0
// ClockLock: the clock of a GPU held while the object lives, and given back whatever happens to us.
//
// A second process waits on a pipe from this one; when the pipe closes without a word, which a kill
// or a crash brings about as well, it gives the clock back. Thread-safety: belongs to one thread.
// Failure: kUnavailable, with the reason; the clock is then as it was.
#pragma once

#include "base/process.h"
#include "base/status.h"
#include "gpu/monitor.h"

#include <memory>
#include <string>

namespace purlin::gpu {

// "base" -> 0, "max" -> the device's nominal clock, "1500" -> 1500; kInvalid otherwise.
Result<unsigned> parse_clock(const std::string& text, const DeviceInfo& device);

class ClockLock {
 public:
  // `keeper` is the command of the second process: it is to call keep_clock().
  static Result<std::unique_ptr<ClockLock>> acquire(std::unique_ptr<Monitor> monitor, unsigned mhz,
                                                    const std::vector<std::string>& keeper);
  ~ClockLock();
  ClockLock(const ClockLock&) = delete;
  ClockLock& operator=(const ClockLock&) = delete;

 private:
  ClockLock(std::unique_ptr<Monitor> monitor, Process keeper)
      : monitor_(std::move(monitor)), keeper_(std::move(keeper)) {}
  std::unique_ptr<Monitor> monitor_;
  Process keeper_;
};

// The second process: says "ready" on stdout, waits for stdin to end, unlocks unless told "done".
Status keep_clock(Monitor& monitor);

}  // namespace purlin::gpu
