// SPDX-License-Identifier: Apache-2.0
// The directory of the sample kernels: PURLIN_KERNELS, next to an installed binary, or in the
// source tree that built it. kNotFound lists the searched places.
#pragma once

#include "base/status.h"

#include <string>

namespace purlin::cli {

Result<std::string> kernels_directory();

}  // namespace purlin::cli
