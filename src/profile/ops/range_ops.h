// SPDX-License-Identifier: Apache-2.0
// What an NVTX or ROCTX range is, by its name: an op of PyTorch (emit_nvtx), a step, a wait for
// data, communication, or the user's own. Pure functions over foreign text.
#pragma once

#include "model/problem/problem.h"
#include "model/profile/timeline.h"

#include <optional>
#include <string>
#include <string_view>

namespace purlin::profile {

struct RangeOp {
  std::string name;   // "aten::mm"
  std::string shape;  // problem shape, else the inputs' dimensions: "[[8, 2], [2, 4]]"
  std::string dtype;
};

// nullopt where the range is no framework's op.
std::optional<RangeOp> op_of_range(std::string_view name);
// `domain` is the NVTX domain's name, "" for the default one.
RangeKind kind_of_range(std::string_view name, std::string_view domain);

}  // namespace purlin::profile
