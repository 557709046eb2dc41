// SPDX-License-Identifier: Apache-2.0
// The profile file. What is read must also survive being written and read again.
#include "profile/format/file.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const purlin::Result<purlin::Profile> read = purlin::profile::decode_profile(bytes);
  if (!read.is_ok()) return 0;
  if (!purlin::profile::decode_profile(purlin::profile::encode_profile(*read)).is_ok())
    std::abort();
  return 0;
}
