// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/roofs.h"

#include "fleet/analysis/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace purlin::fleet::analysis {
namespace {

struct RoofSums {
  double ns = 0;
  std::vector<const Problem*> problems;
};

std::string why_unknown(const Cell& cell, RoofReader& reader) {
  if (cell.shape.empty()) return "no problem shape was recorded";
  if (!reader.knows_gpu(cell))
    return fmt::format("the figures of {} are not known",
                       cell.gpu.empty() ? std::string("its GPU") : cell.gpu);
  return "no model says what work this shape is";
}

// Its problems are in order of their time, largest first.
RoofRow row_of(const RoofSums& all, RoofsBy by, RoofReader& reader) {
  RoofRow row;
  const Cell& first = *all.problems.front()->cell;
  row.kernel = first.kernel;
  if (by == RoofsBy::kShape) row.shape = first.shape, row.dtype = first.dtype, row.gpu = first.gpu;
  row.gpu_s = all.ns * 1e-9;
  struct Bounded {
    double ns = 0;
    analyze::Roof roof;  // of its largest problem
  };
  std::map<analyze::Bound, Bounded> bounds;
  double known_ns = 0, floor_ns = 0;
  for (const Problem* problem : all.problems) {
    const Cell& cell = *problem->cell;
    const double ns = problem->time.total_ns();
    const analyze::Roof roof = reader.roof_of(cell, problem->time);
    if (roof.utilization > 0) {
      known_ns += ns;
      floor_ns += ns * std::min(roof.utilization, 1.0);
    } else if (row.unknown.empty()) {
      row.unknown = why_unknown(cell, reader);
    }
    if (roof.bound == analyze::Bound::kUnknown) continue;
    Bounded& bounded = bounds[roof.bound];
    if (bounded.ns == 0) bounded.roof = roof;
    bounded.ns += ns;
  }
  row.known_gpu_s = known_ns * 1e-9;
  if (known_ns > 0) row.utilization = floor_ns / known_ns;
  double most_ns = 0;
  for (const auto& [bound, bounded] : bounds) {
    if (bounded.ns <= most_ns) continue;
    most_ns = bounded.ns;
    row.bound = bound;
    row.bound_from = bounded.roof.bound_from;
    row.evidence = bounded.roof.evidence;
  }
  if (all.ns > 0) row.bound_share = most_ns / all.ns;
  return row;
}

}  // namespace

std::optional<double> RoofRow::headroom() const {
  return utilization ? std::optional(1 - *utilization) : std::nullopt;
}

const analyze::KernelName& RoofReader::name_of(const Cell& cell) {
  const std::string& raw = cell.raw.empty() ? cell.kernel : cell.raw;
  const auto found = names_.find(raw);
  return found != names_.end() ? found->second
                               : names_.emplace(raw, analyze::describe_kernel(raw)).first->second;
}

const RoofReader::Gpu& RoofReader::gpu_of(const Cell& cell) {
  const auto found = gpus_.find(cell.gpu);
  if (found != gpus_.end()) return found->second;
  Gpu& gpu = gpus_[cell.gpu];
  gpu.device.name = cell.gpu;
  gpu.ceilings = analyze::build_ceilings(gpu.device);
  return gpu;
}

analyze::Roof RoofReader::roof_of(const Cell& cell, const Sketch& time) {
  const Gpu& gpu = gpu_of(cell);
  analyze::RoofSum sum(gpu.device, gpu.ceilings);
  KernelRow row;
  row.name = cell.raw.empty() ? cell.kernel : cell.raw;
  row.op = cell.op, row.shape = cell.shape, row.dtype = cell.dtype;
  row.duration = time;
  sum.add(row, name_of(cell));
  return sum.roof();
}

std::vector<RoofRow> find_roofs(const std::vector<Cell>& cells, RoofsBy by, std::size_t limit) {
  const std::map<ProblemKey, Problem> problems = problems_of(cells);
  std::map<ProblemKey, RoofSums> sums;
  for (const auto& [key, problem] : problems) {
    RoofSums& sum = sums[by == RoofsBy::kShape ? key : ProblemKey{std::get<0>(key), "", "", ""}];
    sum.ns += problem.time.total_ns();
    sum.problems.push_back(&problem);
  }
  std::vector<RoofSums*> order;
  for (auto& [key, sum] : sums) order.push_back(&sum);
  std::stable_sort(order.begin(), order.end(),
                   [](const RoofSums* a, const RoofSums* b) { return a->ns > b->ns; });
  if (order.size() > limit) order.resize(limit);
  std::vector<RoofRow> rows;
  RoofReader reader;
  for (RoofSums* one : order) {
    std::stable_sort(
        one->problems.begin(), one->problems.end(),
        [](const Problem* a, const Problem* b) { return a->time.total_ns() > b->time.total_ns(); });
    rows.push_back(row_of(*one, by, reader));
  }
  return rows;
}

}  // namespace purlin::fleet::analysis
