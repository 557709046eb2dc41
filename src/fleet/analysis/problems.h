// SPDX-License-Identifier: Apache-2.0
// Problems: what is tuned and judged as one thing: a kernel at one shape and type on one model of
// GPU, over all times and nodes.
//
// Pure functions over plain types, safe on any thread. Cannot fail.
#pragma once

#include "fleet/analysis/cells.h"

#include <map>
#include <string_view>
#include <tuple>
#include <vector>

namespace purlin::fleet::analysis {

struct Problem {
  const Cell* cell = nullptr;  // one of its cells; with an op, where one has it
  Sketch time;
};
// Kernel, shape, dtype, GPU model: views into the cells.
using ProblemKey =
    std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;

std::map<ProblemKey, Problem> problems_of(const std::vector<Cell>& cells);

}  // namespace purlin::fleet::analysis
