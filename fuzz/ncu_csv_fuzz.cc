// SPDX-License-Identifier: Apache-2.0
// Nsight Compute's CSV: whatever the bytes, an error or a profile whose indices and numbers hold.
#include "profile/import/ncu/csv.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using purlin::profile::Input;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const purlin::Result<purlin::Profile> profile = purlin::profile::import_ncu_csv(
      Input::from_bytes(text), Input::from_bytes(text), "fuzz.csv", {});
  if (!profile.is_ok()) return 0;
  for (const purlin::KernelRow& row : profile->kernels) {
    if (static_cast<std::size_t>(row.device) >= profile->environment.devices.size()) std::abort();
    for (const purlin::Counter& counter : row.counters)
      if (!std::isfinite(counter.value) || !(counter.launches > 0)) std::abort();
  }
  return 0;
}
