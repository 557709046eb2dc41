// SPDX-License-Identifier: Apache-2.0
// What is known of a config's kernel once it is compiled, as counters: where nobody reads those of
// the hardware, the strategy `counters` learns from these. Pure. Never fails; what the backend or
// the architecture does not tell is left out.
#pragma once

#include "gpu/device.h"

#include <map>
#include <string>

namespace purlin::measure {

// "registers" (per thread), "shared_bytes" (per block, static and dynamic), "local_bytes" (per
// thread: spills and stack), "code_bytes" (of the binary), "blocks" and "threads" (of the grid and
// of a block), "occupancy" (what an SM can hold), "estimated_occupancy" and "waves" (with the
// blocks there are).
std::map<std::string, double> kernel_facts(const gpu::Kernel& kernel, const gpu::Binary& binary,
                                           const LaunchShape& launch, const DeviceInfo& device);

}  // namespace purlin::measure
