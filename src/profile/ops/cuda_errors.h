// SPDX-License-Identifier: Apache-2.0
// Names of the errors that a CUDA call returns, for recordings that keep the number alone. From 100
// on, the runtime and the driver share their numbers. A pure function; thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace purlin::profile {

std::string cuda_error_name(std::int64_t code);  // "cudaErrorIllegalAddress"; "": not known

}  // namespace purlin::profile
