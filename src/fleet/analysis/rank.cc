// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/rank.h"

#include "fleet/analysis/role.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace purlin::fleet::analysis {
namespace {

// What is assumed of a task without a measurement, as in the backlog (backlog/order.h).
constexpr double kAssumedHeadroom = 0.2;

std::string cell_role(const Cell& cell) {
  return cell.role.empty() ? std::string(role_of(cell.kernel, cell.op)) : cell.role;
}

struct KernelSum {
  Sketch time;
  std::map<std::string, double> roles;  // GPU time by role: one kernel may run in several ranges
  std::set<std::string_view> nodes;
  std::set<std::pair<std::string_view, std::string_view>> shapes;
};

std::string largest(const std::map<std::string, double>& shares) {
  const auto best =
      std::max_element(shares.begin(), shares.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == shares.end() ? "" : best->first;
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

std::size_t Top::kernels_with(double share) const {
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (kernels[i].cumulative_share >= share - 1e-12) return i + 1;
  return kernels.size();
}

Top top_kernels(const std::vector<Cell>& cells) {
  std::map<std::string_view, KernelSum> sums;
  std::map<std::string, double> roles;
  double total_ns = 0;
  for (const Cell& cell : cells) {
    KernelSum& sum = sums[cell.kernel];
    const std::string role = cell_role(cell);
    sum.time.merge(cell.time);
    sum.roles[role] += cell.time.total_ns();
    roles[role] += cell.time.total_ns();
    sum.nodes.insert(cell.node);
    sum.shapes.emplace(cell.shape, cell.dtype);
    total_ns += cell.time.total_ns();
  }
  Top top;
  top.gpu_s = total_ns * 1e-9;
  for (const auto& [kernel, sum] : sums) {
    TopKernel row;
    row.kernel = kernel;
    row.role = largest(sum.roles);
    row.launches = sum.time.count();
    row.gpu_s = sum.time.total_ns() * 1e-9;
    row.share = total_ns > 0 ? sum.time.total_ns() / total_ns : 0;
    row.p50_ns = sum.time.quantile(0.5);
    row.p95_ns = sum.time.quantile(0.95);
    row.nodes = static_cast<int>(sum.nodes.size());
    row.shapes = static_cast<int>(sum.shapes.size());
    top.kernels.push_back(std::move(row));
  }
  std::stable_sort(top.kernels.begin(), top.kernels.end(),
                   [](const TopKernel& a, const TopKernel& b) { return a.gpu_s > b.gpu_s; });
  double share = 0;
  for (TopKernel& row : top.kernels) row.cumulative_share = share += row.share;
  for (const auto& [role, ns] : roles)
    top.roles.push_back({role, ns * 1e-9, total_ns > 0 ? ns / total_ns : 0});
  std::stable_sort(top.roles.begin(), top.roles.end(),
                   [](const RoleShare& a, const RoleShare& b) { return a.gpu_s > b.gpu_s; });
  return top;
}

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
  using Key = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;
  struct Group {
    Sketch time;
    const Cell* cell = nullptr;
  };
  std::map<Key, Group> groups;
  for (const Cell& cell : cells) {
    Group& group = groups[{cell.kernel, cell.shape, cell.dtype, cell.gpu}];
    group.time.merge(cell.time);
    if (group.cell == nullptr || group.cell->op.empty()) group.cell = &cell;
  }
  std::map<Key, const Known*> facts;
  for (const Known& one : known) facts[{one.kernel, one.shape, one.dtype, one.gpu}] = &one;
  std::vector<TuneTask> tasks;
  for (const auto& [key, group] : groups) {
    TuneTask task;
    task.role = cell_role(*group.cell);
    if (!can_be_tuned(task.role)) continue;
    task.kernel = group.cell->kernel, task.op = group.cell->op;
    task.shape = group.cell->shape, task.dtype = group.cell->dtype, task.gpu = group.cell->gpu;
    task.launches = group.time.count();
    task.gpu_s = group.time.total_ns() * 1e-9;
    task.p50_ns = group.time.quantile(0.5);
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
