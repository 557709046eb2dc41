// SPDX-License-Identifier: Apache-2.0
#include "model/device/launch.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin {
namespace {

std::uint32_t to_u32(const Json& json, std::uint32_t fallback) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(json.as_int(fallback), 0, UINT32_MAX));
}

Dim3 dim_from(const Json& json) {
  Dim3 dim = {1, 1, 1};
  for (std::size_t i = 0; i < std::min(dim.size(), json.items().size()); ++i)
    dim[i] = to_u32(json.items()[i], 1);
  return dim;
}

Json dim_json(const Dim3& extents) { return is_known(extents) ? Json::array_of(extents) : Json(); }

}  // namespace

bool is_known(const Dim3& extents) {
  return std::find(extents.begin(), extents.end(), 0u) == extents.end();
}

std::string to_text(const Dim3& extents) {
  return is_known(extents) ? fmt::format("{}x{}x{}", extents[0], extents[1], extents[2]) : "?";
}

std::string to_text(const LaunchShape& shape) {
  std::string out = to_text(shape.grid) + " / " + to_text(shape.block);
  if (shape.cluster != Dim3{1, 1, 1}) out += " cluster " + to_text(shape.cluster);
  if (shape.dynamic_shared_bytes != 0) out += fmt::format(" shared {}", shape.dynamic_shared_bytes);
  return out;
}

Json to_json(const LaunchShape& shape) {
  return Json::object({{"grid", dim_json(shape.grid)},
                       {"block", dim_json(shape.block)},
                       {"cluster", dim_json(shape.cluster)},
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
