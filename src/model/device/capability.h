// SPDX-License-Identifier: Apache-2.0
// Capability: one thing that Purlin can or cannot do on a machine, with the evidence and the fix.
//
// `purlin doctor` collects them: the gpu room examines drivers and devices, the profile and cache
// rooms their own files. Plain values; no failure.
#pragma once

#include "base/json/json.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin {

enum class CapabilityState { kOk, kDegraded, kMissing };
std::string_view state_name(CapabilityState state);  // "ok", "degraded", "missing"

struct Capability {
  std::string id;     // stable: "cuda_driver"
  std::string title;  // "CUDA driver"
  CapabilityState state = CapabilityState::kMissing;
  std::string evidence;  // versions, paths, names
  std::string fix;       // the advice; "" when ok
};

// The array `capabilities` of purlin.doctor/1 (docs/formats/doctor.md).
Json to_json(const std::vector<Capability>& capabilities);

}  // namespace purlin
