// SPDX-License-Identifier: Apache-2.0
// Role: what a kernel does for the model that runs it, from its name and its operator or NVTX
// range.
//
// One of "attention", "kv_cache", "mlp", "matmul", "conv", "norm", "softmax", "sampling",
// "embedding", "optimizer", "communication", "elementwise", "reduction", "copy", "other". A matrix
// product has the role of the range that it runs in, and "matmul" where no range says more. Pure.
#pragma once

#include <string_view>

namespace purlin::fleet::analysis {

std::string_view role_of(std::string_view kernel, std::string_view op);

// Whether another config or kernel can make it faster: not communication and copies.
bool can_be_tuned(std::string_view role);

}  // namespace purlin::fleet::analysis
