// SPDX-License-Identifier: Apache-2.0
// Recorded search spaces come from other people: any bytes give a space or a Status.
#include "base/gzip.h"
#include "gpu/replay/replay_space.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (purlin::is_gzip(bytes)) {
    (void)purlin::gunzip(bytes, std::size_t{16} << 20);
    return 0;
  }
  const auto space = purlin::gpu::ReplaySpace::parse(bytes);
  if (!space.is_ok()) return 0;
  // Whatever was recorded must be found again by its own config.
  for (const purlin::gpu::RecordedRun& run : space->runs())
    if (!space->find(space->config(run)).is_ok()) __builtin_trap();
  return 0;
}
