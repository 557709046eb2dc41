// SPDX-License-Identifier: Apache-2.0
// Lists as Python writes them, for files that hold their values as source text:
// "[1, 2, 4] + list(range(32, 1024+1, 32))", "[2**i for i in range(6) if i != 2]".
//
// Lists, tuples, range, list(), + and comprehensions with one `for`; items are expressions
// (expression.h). Nothing is executed; length and nesting are bounded. Pure functions.
#pragma once

#include "base/status.h"
#include "model/expression/value.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace purlin {

// kInvalid with the column, or for more than `most` values.
Result<std::vector<Value>> parse_python_list(std::string_view text, std::size_t most);

}  // namespace purlin
