// SPDX-License-Identifier: Apache-2.0
// The capabilities of this machine's drivers, devices, vendor libraries, counters and clocks.
//
// The functions load libraries and read files, and change nothing. Thread-safety: free functions.
// Failure: none; a capability that cannot be examined is missing.
#pragma once

#include "model/device/capability.h"
#include "model/device/device.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::gpu {

// `devices` and `problems` as discover() returns them. Without a CUDA driver, every capability that
// needs it has the same fix.
std::vector<Capability> examine_devices(const std::vector<DeviceInfo>& devices,
                                        const std::vector<std::string>& problems);

// The text of /proc/driver/nvidia/params against the process's effective capabilities (CapEff).
Capability examine_counters(std::string_view driver_parameters, std::uint64_t capabilities);

}  // namespace purlin::gpu
