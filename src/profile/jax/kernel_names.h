// SPDX-License-Identifier: Apache-2.0
// What the names of kernels and of XLA's marks tell. Pure functions over foreign names.
#pragma once

#include <string_view>

namespace purlin::profile {

// Of cuBLAS, cuDNN and their like: not one that XLA compiled.
bool is_library_kernel(std::string_view name);
// One that a library launches around the kernel that does the work.
bool is_helper(std::string_view name);
// The type of the operands: "bf16"; "" where the name does not say.
std::string_view dtype_by_name(std::string_view name);

// XLA marks its launches with NVTX: "Thunk:#hlo_op=custom-call.3,unique_hlo_op_id=7#". That is a
// name of XLA's, and not one of the program's.
bool is_mark(std::string_view op);
// The value behind `key` of a mark: "custom-call.3" for "hlo_op="; "" without.
std::string_view marked(std::string_view op, std::string_view key);

}  // namespace purlin::profile
