// SPDX-License-Identifier: Apache-2.0
// OpFacts: what the host's ops around a launch show: their names, and their inputs' extents
// where no problem shape took their place. Pure functions over a profile.
#pragma once

#include "model/profile/timeline.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace purlin::analyze {

inline constexpr int kMostOpsAround = 64;  // records of other tools may go in circles

bool named_in(std::span<const std::string_view> names, std::string_view name);
// Whether two launches are of one op: the parts of a split product.
bool same_op(const Timeline& timeline, const Activity& a, const Activity& b);
// The outermost op of these names around a launch; nullptr without one.
const Op* outermost_op(const Timeline& timeline, const Activity& activity,
                       std::span<const std::string_view> names);
// Whether autograd launched it: an op of the backward pass is around it.
bool in_backward(const Timeline& timeline, const Activity& activity);
// "64x1024,4096" -> {{64, 1024}, {4096}}; {} where it is a problem shape or not recorded.
std::vector<std::vector<double>> input_extents(const Timeline& timeline, const Op& op);
double elements_of(const std::vector<double>& extents);
// The extents of the innermost op around a launch.
std::vector<std::vector<double>> input_extents(const Timeline& timeline, const Activity& activity);
// Ops by name that begin between a launch and what its thread gave the device or awaited before it.
std::vector<const Op*> ops_before(const Timeline& timeline, const Activity& launch,
                                  std::span<const std::string_view> names);

}  // namespace purlin::analyze
