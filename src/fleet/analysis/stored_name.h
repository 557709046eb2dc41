// SPDX-License-Identifier: Apache-2.0
// The name under which a fleet's store holds a kernel: readable, and of bounded size. Namesakes of
// a program share one. Pure functions.
#pragma once

#include "analyze/kernel_name/kernel_name.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace purlin::fleet::analysis {

inline constexpr std::size_t kMaxKernelBytes = 4096;

std::string stored_name(const analyze::KernelName& name, std::string_view recorded);

}  // namespace purlin::fleet::analysis
