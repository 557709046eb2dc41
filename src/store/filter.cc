// SPDX-License-Identifier: Apache-2.0
#include "store/filter.h"

namespace purlin::store {
namespace {

constexpr std::array<std::string_view, kDimensions> kDimensionNames = {
    "kernel", "raw",    "role",    "op",    "shape", "dtype", "model",
    "mig",    "driver", "runtime", "build", "job",   "node",  "gpu"};

}  // namespace

std::string_view name_of(Dimension dimension) {
  return kDimensionNames[static_cast<std::size_t>(dimension)];
}

std::optional<Dimension> dimension_of(std::string_view name) {
  for (std::size_t i = 0; i < kDimensionNames.size(); ++i)
    if (kDimensionNames[i] == name) return static_cast<Dimension>(i);
  return std::nullopt;
}

}  // namespace purlin::store
