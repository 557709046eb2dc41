// SPDX-License-Identifier: Apache-2.0
// The process's CUDA devices, for the environment block of the profile. The driver that the program
// has loaded reports them. Call these functions only after the program has launched something: the
// driver is initialised then. They keep no state. What the driver does not report is left out.
#pragma once

#include <string>

namespace purlin::profile::capture::cuda {

// A JSON array in the order of CUDA's device numbers, as the process sees them; "[]" when the
// driver reports none.
std::string describe_devices();

// Whether a device's primary context is in use: the one of CUDA's runtime, PyTorch and most others.
enum class Contexts { kUnknown, kNone, kSome };
Contexts primary_contexts();

// Describes devices that other processes use too, and devices of which this process has only a
// part. Durations are then not those of the whole device. "" when neither is known to apply.
std::string sharing_of_devices();

}  // namespace purlin::profile::capture::cuda
