// SPDX-License-Identifier: Apache-2.0
// Finding devices by name.
#pragma once

#include "base/status.h"
#include "gpu/device.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::gpu {

// Every device of every backend that answers, best first: CUDA, OpenCL GPUs, OpenCL CPUs.
// `problems`, if given, gets a line for each backend that does not.
std::vector<DeviceInfo> discover(std::vector<std::string>* problems = nullptr);

// "cuda:0", "opencl:1", "cuda" (its first), "replay:FILE", "fake:SCRIPT" or "auto" (the best
// found). kUnavailable when there is none, with what was looked for and how to get one.
Result<std::unique_ptr<Device>> open_device(std::string_view name);

}  // namespace purlin::gpu
