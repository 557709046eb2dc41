// SPDX-License-Identifier: Apache-2.0
// ClockLock: locks the clock of a GPU while the object lives. The clock is unlocked even if this
// process is killed or crashes.
//
// A keeper (base/os/keeper.h) unlocks it then. Thread-safety: belongs to one thread. Failure:
// kUnavailable, with the reason; the clock is then unchanged.
#pragma once

#include "base/os/keeper.h"
#include "base/status.h"
#include "gpu/monitor.h"

#include <memory>
#include <string>

namespace purlin::gpu {

// "base" -> 0, "max" -> the device's nominal clock, "1500" -> 1500; kInvalid otherwise.
Result<unsigned> parse_clock(const std::string& text, const DeviceInfo& device);

class ClockLock {
 public:
  // `keeper` is the command of the second process: it must call keep_clock().
  static Result<std::unique_ptr<ClockLock>> acquire(std::unique_ptr<Monitor> monitor, unsigned mhz,
                                                    const std::vector<std::string>& keeper);
  ~ClockLock();
  ClockLock(const ClockLock&) = delete;
  ClockLock& operator=(const ClockLock&) = delete;

 private:
  ClockLock(std::unique_ptr<Monitor> monitor, Keeper keeper)
      : monitor_(std::move(monitor)), keeper_(std::move(keeper)) {}
  std::unique_ptr<Monitor> monitor_;
  Keeper keeper_;
};

// The second process.
Status keep_clock(Monitor& monitor);

}  // namespace purlin::gpu
