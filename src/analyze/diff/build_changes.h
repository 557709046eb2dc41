// SPDX-License-Identifier: Apache-2.0
// What differs between the kernels of an item's two sides: library, layout, types, tensor cores,
// registers, occupancy. Private to analyze/diff. A pure function.
#pragma once

#include "analyze/report/report.h"

#include <string>
#include <vector>

namespace purlin::analyze {

// The heaviest row of each side. "library cublas -> cutlass", "registers 96 -> 168"; what one side
// does not know is left out.
std::vector<std::string> build_changes(const KernelStat& a, const KernelStat& b);

}  // namespace purlin::analyze
