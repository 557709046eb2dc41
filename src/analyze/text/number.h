// SPDX-License-Identifier: Apache-2.0
// Numbers of documents: whole ones as integers, so that a count of 12 does not read 12.0. Infinite
// and NaN values become null in JSON. A pure function.
#pragma once

#include "base/json/json.h"

#include <cmath>
#include <cstdint>

namespace purlin::analyze {

inline Json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p53)
    return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace purlin::analyze
