// SPDX-License-Identifier: Apache-2.0
// A module's machine code, as a capture left it: an offset, then the module.
#include "profile/sass.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::uint64_t offset = data[0] * 256u + data[1];
  const std::string_view module(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::uint64_t at = purlin::profile::waiting_at(module, "f", offset);
  if (at > offset || (at != offset && !purlin::profile::is_barrier(module, "f", at))) std::abort();
  return 0;
}
