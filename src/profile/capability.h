// SPDX-License-Identifier: Apache-2.0
// The capability to capture: the injected libraries of CUDA and OpenCL. A free function that only
// looks for files; no failure.
#pragma once

#include "model/device/capability.h"

namespace purlin::profile {

Capability examine_capture_libraries();

}  // namespace purlin::profile
