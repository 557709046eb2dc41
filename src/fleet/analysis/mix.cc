// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/mix.h"

#include "guard/gate/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace purlin::fleet::analysis {
namespace {

constexpr double kNoLevel = std::numeric_limits<double>::quiet_NaN();
constexpr int kFitRounds = 6;

// One node: its strata over the steps.
struct NodeSeries {
  std::map<StratumKey, std::map<std::size_t, Sketch>> strata;
};

struct FitPoint {
  std::size_t stratum, step;
  double log_ns;
};

// log p50 = reference of the stratum + level of the step, by turns. A stratum that a step lacks
// therefore moves no level. Steps without a common stratum stay at the reference: no shift is
// invented for them.
std::vector<double> fit(const NodeSeries& node, std::size_t steps, const Needs& needs) {
  std::vector<FitPoint> points;
  std::vector<double> weights;
  for (const auto& [key, series] : node.strata) {
    double weight = 0;
    for (const auto& [step, sketch] : series) {
      if (sketch.count() < needs.cell_launches) continue;
      points.push_back({weights.size(), step, log_p50(sketch)});
      weight += sketch.total_ns();
    }
    weights.push_back(weight);
  }
  std::vector<double> reference(weights.size(), 0), level(steps, 0);
  std::vector<double> sum, divisor;
  for (int round = 0; round < kFitRounds; ++round) {
    sum.assign(weights.size(), 0), divisor.assign(weights.size(), 0);
    for (const FitPoint& point : points)
      sum[point.stratum] += point.log_ns - level[point.step], divisor[point.stratum] += 1;
    for (std::size_t i = 0; i < sum.size(); ++i)
      if (divisor[i] > 0) reference[i] = sum[i] / divisor[i];
    sum.assign(steps, 0), divisor.assign(steps, 0);
    for (const FitPoint& point : points) {
      sum[point.step] += weights[point.stratum] * (point.log_ns - reference[point.stratum]);
      divisor[point.step] += weights[point.stratum];
    }
    for (std::size_t i = 0; i < steps; ++i) level[i] = divisor[i] > 0 ? sum[i] / divisor[i] : 0;
  }
  for (std::size_t i = 0; i < steps; ++i)
    if (divisor.empty() || divisor[i] <= 0) level[i] = kNoLevel;
  return level;
}

}  // namespace

double log_p50(const Sketch& sketch) { return std::log(std::max(sketch.quantile(0.5), 1e-3)); }

std::map<KernelKey, NodeStrata> by_kernel(const std::vector<Cell>& cells) {
  std::map<KernelKey, NodeStrata> kernels;
  for (const Cell& cell : cells)
    kernels[{cell.kernel, cell.gpu}][cell.node][{cell.shape, cell.dtype}].merge(cell.time);
  return kernels;
}

Strata merged(const NodeStrata& nodes) {
  Strata all;
  for (const auto& [node, strata] : nodes)
    for (const auto& [key, sketch] : strata) all[key].merge(sketch);
  return all;
}

Shift shift_of(const Strata& before, const Strata& after, const Needs& needs) {
  Shift shift;
  double weights = 0;
  for (const auto& [key, old] : before) {
    const auto found = after.find(key);
    if (found == after.end()) continue;
    const Sketch& now = found->second;
    if (old.count() < needs.cell_launches || now.count() < needs.cell_launches) continue;
    const double weight = std::min(old.total_ns(), now.total_ns());
    shift.log_ratio += weight * (log_p50(now) - log_p50(old));
    weights += weight;
    shift.common_before_ns += old.total_ns();
    shift.common_after_ns += now.total_ns();
    ++shift.strata;
  }
  if (weights > 0) shift.log_ratio /= weights;
  return shift;
}

Levels levels_of(const std::vector<const Cell*>& cells, std::int64_t step_ns, const Needs& needs) {
  Levels levels;
  if (cells.empty()) return levels;
  const auto step_of = [&](const Cell* cell) { return cell->begin_ns / step_ns; };
  const auto [first, last] =
      std::minmax_element(cells.begin(), cells.end(),
                          [&](const Cell* a, const Cell* b) { return step_of(a) < step_of(b); });
  const std::int64_t begin = step_of(*first);
  const std::size_t steps = static_cast<std::size_t>(step_of(*last) - begin) + 1;
  for (std::size_t i = 0; i < steps; ++i)
    levels.steps.push_back((begin + static_cast<std::int64_t>(i)) * step_ns);
  std::map<std::string, NodeSeries> nodes;
  for (const Cell* cell : cells)
    nodes[cell->node]
        .strata[{cell->shape, cell->dtype}][static_cast<std::size_t>(step_of(cell) - begin)]
        .merge(cell->time);
  for (const auto& [name, node] : nodes) {
    levels.nodes.push_back(name);
    levels.values.push_back(fit(node, steps, needs));
  }
  return levels;
}

std::vector<double> Levels::median_over_nodes() const {
  std::vector<std::vector<double>> at(steps.size());
  for (const std::vector<double>& node : values) {
    double sum = 0;
    int count = 0;
    for (const double value : node)
      if (!std::isnan(value)) sum += value, ++count;
    for (std::size_t i = 0; i < node.size(); ++i)
      if (!std::isnan(node[i])) at[i].push_back(node[i] - sum / count);
  }
  std::vector<double> medians;
  for (std::vector<double>& step : at)
    medians.push_back(step.empty() ? kNoLevel : guard::median_of(std::move(step)));
  return medians;
}

}  // namespace purlin::fleet::analysis
