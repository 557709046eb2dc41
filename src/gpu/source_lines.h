// SPDX-License-Identifier: Apache-2.0
// Source lines of GPU instructions. The installed libcupti reads them from the line tables of a
// module's code. Needs neither a GPU nor a driver.
//
// libcupti stays loaded. Not thread-safe. Without it kUnavailable says what to install.
#pragma once

#include "base/status.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace purlin::gpu {

struct SourceLine {
  std::string file;        // as the compiler got it, with its folder
  std::uint32_t line = 0;  // 0 = not known
};

class SourceLines {
 public:
  static Result<SourceLines> open();
  // Of the instruction `offset` bytes into `function`, which is in `module` (a cubin, an ELF file).
  // Line 0 where the module has no line for it.
  SourceLine find(std::string_view module, const std::string& function, std::uint64_t offset) const;

 private:
  SourceLines() = default;
  [[maybe_unused]] void* correlate_ = nullptr;  // CUPTI's function; unused without CUDA
};

}  // namespace purlin::gpu
