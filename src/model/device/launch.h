// SPDX-License-Identifier: Apache-2.0
// Launch shape: grid x block x cluster x dynamic shared memory.
#pragma once

#include "base/json/json.h"

#include <array>
#include <cstdint>
#include <string>

namespace purlin {

using Dim3 = std::array<std::uint32_t, 3>;

struct LaunchShape {
  Dim3 grid = {1, 1, 1};     // blocks (work-groups)
  Dim3 block = {1, 1, 1};    // threads per block (local size)
  Dim3 cluster = {1, 1, 1};  // blocks per cluster
  std::uint32_t dynamic_shared_bytes = 0;

  std::uint64_t blocks() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }
  std::uint64_t threads_per_block() const { return std::uint64_t{block[0]} * block[1] * block[2]; }
  bool operator==(const LaunchShape&) const = default;
};

// Extents of 0 are not known: OpenCL may choose the local size itself.
bool is_known(const Dim3& extents);
std::string to_text(const Dim3& extents);  // "128x64x1"; "?" where not known
// "128x64x1 / 256x1x1", clusters and shared if set.
std::string to_text(const LaunchShape& shape);
Json to_json(const LaunchShape& shape);  // null where not known
LaunchShape launch_from_json(const Json& json);

}  // namespace purlin
