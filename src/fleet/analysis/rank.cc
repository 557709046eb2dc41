// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/rank.h"

#include "fleet/analysis/problems.h"
#include "fleet/analysis/role.h"

#include <algorithm>
#include <map>

namespace purlin::fleet::analysis {
namespace {

// What is assumed of a task without a measurement, as in the backlog (backlog/order.h).
constexpr double kAssumedHeadroom = 0.2;

std::string cell_role(const Cell& cell) {
  return cell.role.empty() ? std::string(role_of(cell.kernel, cell.op)) : cell.role;
}

double headroom_of(const Known& known, double p50_ns, HeadroomBasis* basis) {
  if (known.best_ns && p50_ns > 0) {
    *basis = HeadroomBasis::kBestKnown;
    return std::clamp(1 - *known.best_ns / p50_ns, 0.0, 1.0);
  }
  if (known.roof_utilization) {
    *basis = HeadroomBasis::kRoofline;
    return std::clamp(1 - *known.roof_utilization, 0.0, 1.0);
  }
  *basis = HeadroomBasis::kAssumed;
  return kAssumedHeadroom;
}

}  // namespace

std::string_view to_text(HeadroomBasis basis) {
  switch (basis) {
    case HeadroomBasis::kBestKnown:
      return "best_known";
    case HeadroomBasis::kRoofline:
      return "roofline";
    case HeadroomBasis::kAssumed:
      break;
  }
  return "assumed";
}

std::vector<TuneTask> tune_these(const std::vector<Cell>& cells, const std::vector<Known>& known,
                                 std::size_t limit) {
  std::map<ProblemKey, const Known*> facts;
  for (const Known& one : known) facts[{one.kernel, one.shape, one.dtype, one.gpu}] = &one;
  std::vector<TuneTask> tasks;
  for (const auto& [key, problem] : problems_of(cells)) {
    TuneTask task;
    task.role = cell_role(*problem.cell);
    if (!can_be_tuned(task.role)) continue;
    task.kernel = problem.cell->kernel, task.op = problem.cell->op;
    task.shape = problem.cell->shape, task.dtype = problem.cell->dtype,
    task.gpu = problem.cell->gpu;
    task.launches = problem.time.count();
    task.gpu_s = problem.time.total_ns() * 1e-9;
    task.p50_ns = problem.time.quantile(0.5);
    static const Known nothing;
    const auto found = facts.find({task.kernel, task.shape, task.dtype, task.gpu});
    const Known& fact = found == facts.end() ? nothing : *found->second;
    task.headroom = headroom_of(fact, task.p50_ns, &task.basis);
    task.best_ns = fact.best_ns.value_or(0);
    task.stale = fact.stale;
    tasks.push_back(std::move(task));
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const TuneTask& a, const TuneTask& b) {
    if (a.stale != b.stale) return a.stale;
    return a.saving_s() > b.saving_s();
  });
  if (tasks.size() > limit) tasks.resize(limit);
  return tasks;
}

}  // namespace purlin::fleet::analysis
