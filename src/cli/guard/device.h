// SPDX-License-Identifier: Apache-2.0
// The device under the guard's verbs that measure: watched where NVML knows it, its clock locked
// where that was asked for. Owned by the verb's Command; the clock is given back with it.
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
  // Only a clock that was to be locked and cannot be is a failure.
  Status open(Context& context, const DeviceInfo& device);
  guard::Watch* watch() { return watch_.get(); }  // nullptr: the device cannot be watched
  // At what the clock is held, 0 = its base; nullopt: it is not.
  std::optional<unsigned> locked_mhz() const { return locked_mhz_; }

 private:
  std::string clock_;
  std::optional<unsigned> locked_mhz_;
  std::unique_ptr<gpu::Monitor> monitor_;
  std::unique_ptr<guard::Watch> watch_;
  std::unique_ptr<gpu::ClockLock> lock_;
};

}  // namespace purlin::cli
