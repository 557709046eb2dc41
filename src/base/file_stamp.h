// SPDX-License-Identifier: Apache-2.0
// FileStamp: changes when the contents of a file are written or replaced, as far as its file system
// tells. Free function, thread-safe; all zero where the file is not there.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace purlin {

using FileStamp = std::array<std::int64_t, 4>;
FileStamp file_stamp(const std::string& path);

}  // namespace purlin
