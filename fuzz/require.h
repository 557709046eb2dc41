// SPDX-License-Identifier: Apache-2.0
// What has to hold for any input of a fuzz target.
#pragma once

#include <cstdlib>

inline void require(bool holds) {
  if (!holds) std::abort();
}
