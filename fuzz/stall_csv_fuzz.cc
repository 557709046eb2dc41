// SPDX-License-Identifier: Apache-2.0
// Stall samples as CSV: an error, or a profile within its bounds.
#include "profile/import/ncu/stall_csv.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)purlin::profile::looks_like_stall_csv(text);
  purlin::profile::ImportOptions options;
  options.max_kernel_rows = 16;
  const auto profile =
      purlin::profile::import_stall_csv(purlin::profile::Input::from_bytes(text), "fuzz", options);
  if (profile.is_ok() && profile->kernels.size() > 17) std::abort();
  return 0;
}
