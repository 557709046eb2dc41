// SPDX-License-Identifier: Apache-2.0
// The median of a list: of an even number, the larger of the two in the middle. Linear time.
// Pure function; cannot fail.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace purlin::analyze {

// REQUIRES: not empty.
template <class Number>
Number median_of(std::vector<Number> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace purlin::analyze
