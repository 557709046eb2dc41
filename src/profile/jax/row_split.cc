// SPDX-License-Identifier: Apache-2.0
#include "profile/jax/row_split.h"

#include "profile/jax/kernel_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

namespace purlin::profile {
namespace {

// Launches of one row that have the same op.
struct Share {
  std::string op, shape, dtype;
  Sketch duration;
  std::vector<std::uint32_t> activities;
};

Share share_by_label(const KernelRow& row, const LaunchLabel& label) {
  if (label.launch == nullptr) return {row.op, row.shape, row.dtype, {}, {}};
  if (!label.shaped) return {label.launch->op, "", "", {}, {}};
  return {label.launch->op, label.launch->shape, label.launch->dtype, {}, {}};
}

// Without a name that the program gave it.
bool is_open(const KernelRow& row) { return row.op.empty() || is_mark(row.op); }

void split_row(Profile& run, std::uint32_t index, std::map<std::string, Share>& shares) {
  const KernelRow whole = run.kernels[index];
  double launches = 0, total = 0;
  for (const auto& [key, share] : shares) {
    launches += share.duration.count();
    total += share.duration.total_ns();
  }
  const double weight = whole.duration.count() / launches;
  const double time = total > 0 ? whole.duration.total_ns() / (total * weight) : 1;
  bool first = true;
  for (auto& [key, share] : shares) {
    KernelRow part = whole;
    if (shares.size() > 1) {
      part.duration = share.duration.scaled(time, weight);
      for (Counter& counter : part.counters) counter.launches *= share.duration.count() / launches;
    }
    part.op = std::move(share.op);
    part.shape = std::move(share.shape);
    part.dtype = std::move(share.dtype);
    const auto at = first ? index : static_cast<std::uint32_t>(run.kernels.size());
    if (first) {
      run.kernels[index] = std::move(part);
    } else {
      run.kernels.push_back(std::move(part));
      for (const std::uint32_t each : share.activities) run.timeline.activities[each].row = at;
    }
    first = false;
  }
}

}  // namespace

double split_rows(Profile& run, const std::vector<LaunchLabel>& labels) {
  const std::vector<Activity>& activities = run.timeline.activities;
  std::unordered_set<std::uint32_t> labelled;  // rows
  for (std::uint32_t i = 0; i < labels.size(); ++i)
    if (labels[i].launch != nullptr && is_open(run.kernels[activities[i].row]))
      labelled.insert(activities[i].row);
  double launches = 0;
  std::map<std::uint32_t, std::map<std::string, Share>> rows;
  for (std::uint32_t i = 0; i < labels.size(); ++i) {
    const Activity& each = activities[i];
    if (each.kind != ActivityKind::kKernel || !labelled.contains(each.row)) continue;
    if (labels[i].launch != nullptr) ++launches;
    Share share = share_by_label(run.kernels[each.row], labels[i]);
    const std::string key = fmt::format("{}\n{}\n{}", share.op, share.shape, share.dtype);
    Share& at = rows[each.row].try_emplace(key, std::move(share)).first->second;
    at.duration.add(static_cast<double>(std::max<std::int64_t>(0, each.duration_ns)));
    at.activities.push_back(i);
  }
  for (auto& [row, shares] : rows) split_row(run, row, shares);
  return launches;
}

}  // namespace purlin::profile
