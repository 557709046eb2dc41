// SPDX-License-Identifier: Apache-2.0
// Which ops of a forward pass have a node of the backward pass: PyTorch gives both one sequence
// number. Such an op has to run for the gradients, even where its own result is not read, as that
// of a loss. Pure functions.
#pragma once

#include "profile/import/flow/trace.h"

#include <cstdint>
#include <vector>

namespace purlin::profile::flow {

// By node: the node of the backward pass, for such an op and for what is inside it; kSomeNode for
// what it is inside of; 0 for others.
inline constexpr std::uint32_t kSomeNode = 0xFFFFFFFFu;
std::vector<std::uint32_t> find_differentiated(const ExecutionTrace& trace);
// The innermost node of the backward pass around a node, by that number; 0 outside of any.
std::uint32_t backward_node_around(const ExecutionTrace& trace, std::uint32_t node);

}  // namespace purlin::profile::flow
