// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/problems.h"

namespace purlin::fleet::analysis {

std::map<ProblemKey, Problem> problems_of(const std::vector<Cell>& cells) {
  std::map<ProblemKey, Problem> problems;
  for (const Cell& cell : cells) {
    Problem& problem = problems[{cell.kernel, cell.shape, cell.dtype, cell.gpu}];
    if (problem.cell == nullptr || problem.cell->op.empty()) problem.cell = &cell;
    problem.time.merge(cell.time);
  }
  return problems;
}

}  // namespace purlin::fleet::analysis
