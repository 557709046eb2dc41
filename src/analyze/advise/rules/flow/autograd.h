// SPDX-License-Identifier: Apache-2.0
// Autograd: what a training program cannot leave out though nothing reads it. The last op of a loss
// gives the gradients their formula, even where nothing reads its value. Pure functions over a
// timeline; linear in its ops.
#pragma once

#include "analyze/advise/rules/flow/launches.h"
#include "model/profile/timeline.h"

#include <string_view>
#include <vector>

namespace purlin::analyze {

inline constexpr std::string_view kBackwardNode = "autograd::engine::evaluate_function: ";

// Of forward ops that nothing reads, those that may have a node in the backward pass: it has as
// many nodes of their kind as there are other ops of it.
std::vector<const FlowWork*> with_backward_nodes(const Timeline& timeline,
                                                 const std::vector<const FlowWork*>& forward);
// Whether some op of the timeline updates weights. Else gradients are made for nothing, as in a
// program that measures a backward pass.
bool updates_weights(const Timeline& timeline);

}  // namespace purlin::analyze
