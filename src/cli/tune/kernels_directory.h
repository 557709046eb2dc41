// SPDX-License-Identifier: Apache-2.0
// Where the sample kernels are: PURLIN_KERNELS, beside an installed binary, or in the source tree
// that built it. kNotFound says where was looked.
#pragma once

#include "base/status.h"

#include <string>

namespace purlin::cli {

Result<std::string> kernels_directory();

}  // namespace purlin::cli
