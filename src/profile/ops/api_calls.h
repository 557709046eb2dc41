// SPDX-License-Identifier: Apache-2.0
// The kind of a GPU runtime or driver call and the direction of a copy, by the names that profilers
// record. Known are CUDA runtime and driver, HIP, HSA, Level Zero and SYCL, with version suffixes
// ("_v2", "_ptsz", "_v7000"). Shared by the importers. Pure functions.
#pragma once

#include "model/profile/timeline.h"

#include <string>
#include <string_view>

namespace purlin::profile {

CallKind classify_call(std::string_view name);  // "cudaLaunchKernel" -> kLaunch

// "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice", "[CUDA memcpy HtoD]" -> "h2d"; also
// "d2h", "d2d", "h2h", "p2p", "memset"; "copy" where the direction is not said.
std::string_view classify_copy(std::string_view name);
// The same with the host's memory, where the name has it: "h2d pageable".
// model/profile/copy_kind.h.
std::string copy_kind(std::string_view name);

}  // namespace purlin::profile
