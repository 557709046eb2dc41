// SPDX-License-Identifier: Apache-2.0
// Seeded: a strategy that is handed some configs to measure first, in the order given, and goes its
// own way afterwards. For proposals that come from somewhere better than a guess: a library's own
// heuristic. Thread-safety and failure as for Strategy.
#pragma once

#include "tune/search/strategy.h"

#include <memory>
#include <vector>

namespace purlin::tune {

std::unique_ptr<Strategy> make_seeded(std::unique_ptr<Strategy> inner,
                                      std::vector<std::size_t> seeds);

}  // namespace purlin::tune
