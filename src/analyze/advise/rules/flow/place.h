// SPDX-License-Identifier: Apache-2.0
// Place: where the program runs an op of the timeline: the ops around it, the node of the backward
// pass that it belongs to, the program's own range. An op that has none of them is its own place.
// Pure functions over a timeline that is sorted by start; the names point into it.
#pragma once

#include "model/profile/timeline.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

// Names of the op and of those around it, the op's own first; at most kMostOpsAround.
std::vector<std::string_view> names_around(const Timeline& timeline, std::uint32_t op);
bool in_backward_pass(const Timeline& timeline, std::uint32_t op);
// The op that is the node of the backward pass: this one, or one around it; kNone without one.
std::uint32_t backward_node_of(const Timeline& timeline, std::uint32_t op);
// The node of the backward pass, or the program's own range, or the outermost op.
std::string place_of(const Timeline& timeline, std::uint32_t op);

}  // namespace purlin::analyze
