// SPDX-License-Identifier: Apache-2.0
// What Purlin can do on this machine: each capability with its state, the evidence, and the fix.
//
// examine_machine only looks: it loads libraries and reads files, and changes nothing. Thread-
// safety: free functions. Failure: none; what cannot be found out is a missing capability.
#pragma once

#include "base/json/json.h"
#include "base/terminal.h"
#include "model/device/device.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::cli {

enum class CapabilityState { kOk, kDegraded, kMissing };
std::string_view state_name(CapabilityState state);  // "ok", "degraded", "missing"

struct Capability {
  std::string id;     // stable: "cuda_driver"
  std::string title;  // "CUDA driver"
  CapabilityState state = CapabilityState::kMissing;
  std::string evidence;  // what was seen
  std::string fix;       // what to do about it; "" when ok
};

// `devices` and `problems` as gpu::discover gives them.
std::vector<Capability> examine_machine(const std::vector<DeviceInfo>& devices,
                                        const std::vector<std::string>& problems);

// The text of /proc/driver/nvidia/params against the process's effective capabilities (CapEff).
Capability examine_counters(std::string_view driver_parameters, std::uint64_t capabilities);

// The purlin.doctor/1 document without its head, and the same for people.
void add_capabilities(Json& document, const std::vector<Capability>& capabilities);
std::string render_capabilities(const std::vector<Capability>& capabilities,
                                const Terminal& terminal);

}  // namespace purlin::cli
