// SPDX-License-Identifier: Apache-2.0
// Monitor: what a device does while others use it: clocks, temperature, power, what holds the clock
// down, which processes are on it; and, where permitted, locking its clock.
//
// Reading never disturbs the device. Thread-safety: as noted. Failure: what a driver does not tell
// is 0, empty or unknown; kUnavailable, with what to do, where the clock may not be locked.
#pragma once

#include "base/status.h"
#include "gpu/nvml.h"
#include "model/device/device.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::gpu {

struct DeviceState {
  double sm_clock_mhz = 0, temperature_c = 0, power_w = 0, power_limit_w = 0;
  std::vector<std::string> limits;  // what holds the clock down: "power cap", "thermal, software"
  // Some of them is the hardware protecting itself: what is measured meanwhile is of another
  // device.
  bool protects_itself = false;
  std::optional<std::vector<unsigned>> processes;  // pids that compute on it, as the driver numbers
                                                   // them; nullopt = it does not tell
};

class Monitor {
 public:
  virtual ~Monitor() = default;
  virtual DeviceState read() = 0;  // [MT]
  // Both in MHz; 0 and 0 = the base clock, which every board of the model holds under any load.
  virtual Status lock_clocks(unsigned low_mhz, unsigned high_mhz) = 0;
  virtual Status unlock_clocks() = 0;
};

// For a device that NVML knows: by its UUID. kUnavailable for others.
Result<std::unique_ptr<Monitor>> open_monitor(const DeviceInfo& device);
Result<std::unique_ptr<Monitor>> open_monitor(const std::string& uuid);
std::unique_ptr<Monitor> make_monitor(std::unique_ptr<Nvml> nvml, std::string uuid);

}  // namespace purlin::gpu
