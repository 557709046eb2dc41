// SPDX-License-Identifier: Apache-2.0
// One zstd frame over bytes in memory. Free functions, safe from any thread.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace purlin::store {

// With the size of the contents and a checksum.
Result<std::string> zstd_frame(std::string_view contents);
// kInvalid where it is no single frame that states a size of at most max_bytes, or is damaged. No
// more than the stated size is allocated or written.
Result<std::string> zstd_contents(std::string_view frame, std::size_t max_bytes);

}  // namespace purlin::store
