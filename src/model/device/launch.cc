// SPDX-License-Identifier: Apache-2.0
#include "model/device/launch.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin {
namespace {

std::string dim_text(const Dim3& dim) { return fmt::format("{}x{}x{}", dim[0], dim[1], dim[2]); }

std::uint32_t to_u32(const Json& json, std::uint32_t fallback) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(json.as_int(fallback), 0, UINT32_MAX));
}

Dim3 dim_from(const Json& json) {
  Dim3 dim = {1, 1, 1};
  for (std::size_t i = 0; i < std::min(dim.size(), json.items().size()); ++i)
    dim[i] = to_u32(json.items()[i], 1);
  return dim;
}

}  // namespace

std::string to_text(const LaunchShape& shape) {
  std::string out = dim_text(shape.grid) + " / " + dim_text(shape.block);
  if (shape.cluster != Dim3{1, 1, 1}) out += " cluster " + dim_text(shape.cluster);
  if (shape.dynamic_shared_bytes != 0) out += fmt::format(" shared {}", shape.dynamic_shared_bytes);
  return out;
}

Json to_json(const LaunchShape& shape) {
  return Json::object({{"grid", Json::array_of(shape.grid)},
                       {"block", Json::array_of(shape.block)},
                       {"cluster", Json::array_of(shape.cluster)},
                       {"dynamic_shared_bytes", shape.dynamic_shared_bytes}});
}

LaunchShape launch_from_json(const Json& json) {
  LaunchShape shape;
  shape.grid = dim_from(json["grid"]);
  shape.block = dim_from(json["block"]);
  shape.cluster = dim_from(json["cluster"]);
  shape.dynamic_shared_bytes = to_u32(json["dynamic_shared_bytes"], 0);
  return shape;
}

}  // namespace purlin
