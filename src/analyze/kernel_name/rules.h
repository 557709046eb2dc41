// SPDX-License-Identifier: Apache-2.0
// Who wrote a kernel and what it does, by words in its name: two tables, the first rule that fits
// decides. Private to analyze/kernel_name. Pure functions.
#pragma once

#include <string_view>

namespace purlin::analyze {

// Of a name in lower case, without return type and parameters.
std::string_view family_of(std::string_view lower);    // "custom" where no rule fits
std::string_view op_class_of(std::string_view lower);  // "other" where none does

}  // namespace purlin::analyze
