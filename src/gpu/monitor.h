// SPDX-License-Identifier: Apache-2.0
// Monitor: the state of a device while other programs use it. It reads clocks, temperature, power,
// clock limits and processes, and it locks the clock where that is permitted.
//
// Reading never disturbs the device. Thread-safety: as noted. Failure: a value that the driver does
// not report is 0, empty or unknown; kUnavailable, with advice, if the clock cannot be locked.
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
  std::vector<std::string> limits;  // of the clock: "power cap", "thermal, software"
  // One of the limits protects the hardware. Measurements made now do not represent the device.
  bool protects_itself = false;
  // Pids that compute on it, in the driver's numbering; nullopt = the driver does not report them.
  std::optional<std::vector<unsigned>> processes;
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
