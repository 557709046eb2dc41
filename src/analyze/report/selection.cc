// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/selection.h"

#include "base/regex.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::analyze {
namespace {

double sort_key(const KernelStat& kernel, SortBy by) {
  switch (by) {
    case SortBy::kTotal:
      return kernel.duration.total_ns();
    case SortBy::kCount:
      return kernel.duration.count();
    case SortBy::kP95:
      return kernel.duration.quantile(0.95);
    case SortBy::kHeadroom:
      return headroom_ns(kernel);
  }
  return 0;
}

// Drops the items for which keep[i] is false and tells where the others went.
template <class Item>
std::vector<std::uint32_t> compact(std::vector<Item>& items, const std::vector<bool>& keep) {
  std::vector<std::uint32_t> moved(items.size(), kNone);
  std::size_t to = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!keep[i]) continue;
    moved[i] = static_cast<std::uint32_t>(to);
    if (to != i) items[to] = std::move(items[i]);
    ++to;
  }
  items.resize(to);
  return moved;
}

template <class Row>
std::vector<std::uint32_t> keep_rows(std::vector<Row>& rows, const std::vector<bool>& devices) {
  std::vector<bool> keep;
  for (const Row& row : rows)
    keep.push_back(row.device >= 0 && static_cast<std::size_t>(row.device) < devices.size() &&
                   devices[static_cast<std::size_t>(row.device)]);
  return compact(rows, keep);
}

}  // namespace

Result<SortBy> sort_from_text(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, SortBy>, 4> kWords = {
      {{"total", SortBy::kTotal},
       {"count", SortBy::kCount},
       {"p95", SortBy::kP95},
       {"headroom", SortBy::kHeadroom}}};
  for (const auto& [word, by] : kWords)
    if (text == word) return by;
  return error(Code::kInvalid, "--sort '{}': give 'total', 'count', 'p95' or 'headroom'", text);
}

double headroom_ns(const KernelStat& kernel) {
  if (kernel.roof.utilization <= 0) return -1;
  return kernel.duration.total_ns() * std::max(0.0, 1 - kernel.roof.utilization);
}

void sort_rows(Report& report, SortBy by) {
  std::vector<std::pair<double, std::size_t>> order;  // quantiles are not free: once per row
  for (std::size_t i = 0; i < report.kernels.size(); ++i)
    order.emplace_back(sort_key(report.kernels[i], by), i);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<KernelStat> sorted;
  sorted.reserve(order.size());
  for (const auto& [key, i] : order) sorted.push_back(std::move(report.kernels[i]));
  report.kernels = std::move(sorted);
}

Status filter_rows(Report& report, const std::string& pattern) {
  const Result<Regex> regex = Regex::compile(pattern, {.ignore_case = true});
  if (!regex.is_ok())
    return error(Code::kInvalid, "--filter '{}' is not a regular expression: {}", pattern,
                 regex.status().message());
  const auto matches = [&](const std::string& text) { return regex->search(text); };
  std::vector<bool> keep;
  for (const KernelStat& kernel : report.kernels)
    keep.push_back(matches(kernel.name.full) || matches(kernel.label) || matches(kernel.op) ||
                   matches(std::string(kernel.name.op_class)));
  report.rows_left_out += static_cast<std::size_t>(std::count(keep.begin(), keep.end(), false));
  report.filter = pattern;
  compact(report.kernels, keep);
  return Status::ok();
}

std::string row_key(const KernelStat& kernel, GroupBy by) {
  std::vector<std::string> parts = {kernel.device, kernel.build};
  switch (by) {
    case GroupBy::kKernel:
      parts.push_back(kernel.name.full);
      break;
    case GroupBy::kShape:
      parts.insert(parts.end(), {kernel.name.full, kernel.op, kernel.shape, kernel.dtype});
      break;
    case GroupBy::kLaunch:
      parts.insert(parts.end(), {kernel.name.full, kernel.op, kernel.shape, kernel.dtype,
                                 to_text(kernel.launch)});
      break;
    case GroupBy::kOp:
      parts.push_back(kernel.op);
      break;
    case GroupBy::kOpClass:
      parts.emplace_back(kernel.name.op_class);
      break;
  }
  return join(parts, std::string_view("\0", 1));
}

Status keep_device(Profile& profile, const std::string& which) {
  const std::vector<DeviceInfo>& devices = profile.environment.devices;
  const std::optional<std::int64_t> index = parse_int(which);
  std::vector<bool> wanted;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    wanted.push_back(devices[i].id == which || devices[i].name == which ||
                     (index && *index == static_cast<std::int64_t>(i)));
    ids.push_back(devices[i].id.empty() ? std::to_string(i) : devices[i].id);
  }
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end())
    return error(Code::kNotFound, "--device '{}' is not in this profile, which has: {}", which,
                 ids.empty() ? "no devices" : join(ids, ", "));
  const std::vector<std::uint32_t> kernels = keep_rows(profile.kernels, wanted);
  const std::vector<std::uint32_t> copies = keep_rows(profile.copies, wanted);
  std::vector<bool> keep;
  for (Activity& activity : profile.timeline.activities) {
    const auto& rows = activity.kind == ActivityKind::kKernel ? kernels : copies;
    activity.row = activity.row < rows.size() ? rows[activity.row] : kNone;
    keep.push_back(activity.row != kNone);
  }
  compact(profile.timeline.activities, keep);
  return Status::ok();
}

}  // namespace purlin::analyze
