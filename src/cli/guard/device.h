// SPDX-License-Identifier: Apache-2.0
// The device of the guard verbs that measure. NVML devices are watched, and --lock-clocks locks the
// clock. Owned by the verb's Command; its destructor releases the clock.
#pragma once

#include "cli/frame/command.h"
#include "gpu/clock_lock.h"
#include "gpu/monitor.h"
#include "guard/arms/watch.h"

#include <memory>
#include <optional>
#include <string>

namespace purlin::cli {

class GuardDevice {
 public:
  void declare(Flags& flags);
  // Fails only where --lock-clocks is given and the clock cannot be locked.
  Status open(Context& context, const DeviceInfo& device);
  guard::Watch* watch() { return watch_.get(); }  // nullptr: the device cannot be watched
  // The locked clock in MHz, 0 = the base clock; nullopt: not locked.
  std::optional<unsigned> locked_mhz() const { return locked_mhz_; }

 private:
  std::string clock_;
  std::optional<unsigned> locked_mhz_;
  std::unique_ptr<gpu::Monitor> monitor_;
  std::unique_ptr<guard::Watch> watch_;
  std::unique_ptr<gpu::ClockLock> lock_;
};

}  // namespace purlin::cli
