// SPDX-License-Identifier: Apache-2.0
// The facts of a config's compiled kernel, as counters. Without hardware counters the strategy
// `counters` learns from them. Pure. Never fails; a fact that the backend or the architecture does
// not report is left out.
#pragma once

#include "gpu/device.h"

#include <map>
#include <string>

namespace purlin::measure {

// Per thread: "registers" and "local_bytes" (spills and stack). Per block: "shared_bytes" (static
// and dynamic) and "threads". Of the binary: "code_bytes". Of the grid: "blocks". Of an SM:
// "occupancy" (its limit). With the grid's number of blocks: "estimated_occupancy" and "waves".
std::map<std::string, double> kernel_facts(const gpu::Kernel& kernel, const gpu::Binary& binary,
                                           const LaunchShape& launch, const DeviceInfo& device);

}  // namespace purlin::measure
