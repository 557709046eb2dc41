// SPDX-License-Identifier: Apache-2.0
// Which ops of a forward pass have a node of the backward pass: PyTorch gives both one sequence
// number. Such an op has to run for the gradients, even where its own result is not read, as that
// of a loss. Pure functions.
#pragma once

#include "profile/import/flow/trace.h"

#include <vector>

namespace purlin::profile::flow {

// By node: true for such an op, for what is inside it, and for what it is inside of.
std::vector<bool> find_differentiated(const ExecutionTrace& trace);

}  // namespace purlin::profile::flow
