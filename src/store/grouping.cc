// SPDX-License-Identifier: Apache-2.0
#include "store/grouping.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace purlin::store {
namespace {

int scale_of_step(Step step) {
  return step == Step::kDay     ? scale_of(Level::kDays)
         : step == Step::kMonth ? scale_of(Level::kMonths)
                                : scale_of(Level::kHours);
}

}  // namespace

Grouping::Grouping(std::vector<Dimension> by, Step step) : by_(std::move(by)), step_(step) {
  for (const Dimension dimension : by_) {
    const Kind kind = place_of(dimension).kind;
    if (std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end()) kinds_.push_back(kind);
  }
}

bool Grouping::needs_unit() const {
  return std::find(kinds_.begin(), kinds_.end(), Kind::kUnit) != kinds_.end();
}

std::size_t Grouping::number(std::int64_t begin_ns, const Fields& values) {
  std::string key = join_fields(values);
  key += '\n';
  key += std::to_string(begin_ns);
  const auto [at, is_new] = numbers_.emplace(std::move(key), groups_.size());
  if (is_new) {
    Group group;
    group.begin_ns = begin_ns;
    group.values = values;
    group.sketch = BucketSum(scale_of_step(step_));
    groups_.push_back(std::move(group));
  }
  return at->second;
}

std::vector<Cell> Grouping::cells() const {
  std::vector<Cell> cells;
  cells.reserve(groups_.size());
  for (const Group& group : groups_)
    cells.push_back({group.begin_ns, group.values, group.sketch.sketch(), group.recorded});
  std::sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    return std::tie(a.begin_ns, a.values) < std::tie(b.begin_ns, b.values);
  });
  return cells;
}

std::vector<std::size_t> heaviest(const std::vector<Group>& groups, std::size_t limit) {
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (groups[a].sum_ns != groups[b].sum_ns) return groups[a].sum_ns > groups[b].sum_ns;
    return groups[a].values < groups[b].values;
  });
  order.resize(std::min(limit, order.size()));
  return order;
}

TopKernels top_kernels(const std::vector<Group>& groups, const std::vector<std::size_t>& chosen) {
  TopKernels top;
  top.kernels_in_all = groups.size();
  for (const Group& group : groups) {
    top.sum_ns += group.sum_ns;
    top.launches += group.launches;
    top.roles_ns[group.values[2]] += group.sum_ns;
  }
  for (const std::size_t number : chosen) {
    const Group& group = groups[number];
    const Sketch sketch = group.sketch.sketch();
    top.kernels.push_back({group.values[0], group.values[1], group.values[2], group.launches,
                           group.recorded, group.sum_ns, sketch.quantile(0.5),
                           sketch.quantile(0.95), top.sum_ns > 0 ? group.sum_ns / top.sum_ns : 0});
  }
  return top;
}

void CoverageTable::add(std::int64_t begin_ns, const Fields& platform, const Fields& unit,
                        const Fields& why, const std::array<double, 7>& amounts) {
  static const std::string none;
  const auto field = [](const Fields& fields, std::size_t i) -> const std::string& {
    return i < fields.size() ? fields[i] : none;
  };
  const std::int64_t point = point_of(step_, begin_ns);
  // A name may have any character: each is preceded by its length.
  key_.assign(reinterpret_cast<const char*>(&point), sizeof point);
  for (const std::string* part :
       {&field(unit, 0), &field(unit, 1), &field(platform, 0), &field(why, 0)}) {
    const auto size = static_cast<std::uint32_t>(part->size());
    key_.append(reinterpret_cast<const char*>(&size), sizeof size);
    key_ += *part;
  }
  const auto [at, is_new] = places_.emplace(key_, cells_.size());
  if (is_new) {
    CoverageCell& cell = cells_.emplace_back();
    cell.begin_ns = point;
    cell.node = field(unit, 0), cell.gpu = field(unit, 1);
    cell.model = field(platform, 0), cell.why = field(why, 0);
  }
  CoverageCell& cell = cells_[at->second];
  double* const into[] = {&cell.busy_ns,
                          &cell.seen_ns,
                          &cell.launches_seen,
                          &cell.launches_lost,
                          &cell.launches_sampled_out,
                          &cell.overhead_ns,
                          &cell.bad_timestamps};
  for (std::size_t i = 0; i < amounts.size(); ++i) *into[i] += amounts[i];
}

std::vector<CoverageCell> CoverageTable::cells() && {
  std::sort(cells_.begin(), cells_.end(), [](const CoverageCell& a, const CoverageCell& b) {
    return std::tie(a.begin_ns, a.node, a.gpu, a.model, a.why) <
           std::tie(b.begin_ns, b.node, b.gpu, b.model, b.why);
  });
  return std::move(cells_);
}

}  // namespace purlin::store
