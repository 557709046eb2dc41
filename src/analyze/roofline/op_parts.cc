// SPDX-License-Identifier: Apache-2.0
#include "analyze/roofline/op_parts.h"

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace purlin::analyze {
namespace {

constexpr std::string_view kCutIntoLaunches = "multi_tensor_apply";

}  // namespace

std::vector<double> parts_of_ops(const Profile& profile) {
  const auto& kernels = profile.kernels;
  const Timeline& timeline = profile.timeline;
  std::vector<double> parts(kernels.size(), 1);
  // Rows of one kernel have one number; 0 is of all others.
  std::map<std::string_view, std::uint64_t> numbers;
  std::vector<std::uint64_t> number_of(kernels.size(), 0);
  for (std::size_t row = 0; row < kernels.size(); ++row)
    if (kernels[row].name.find(kCutIntoLaunches) != std::string::npos)
      number_of[row] = numbers.try_emplace(kernels[row].name, numbers.size() + 1).first->second;
  if (numbers.empty()) return parts;

  const auto op_of = [&](const Activity& activity) {
    const bool known = activity.kind == ActivityKind::kKernel && activity.row < kernels.size() &&
                       number_of[activity.row] > 0 && activity.call < timeline.calls.size();
    return known ? timeline.calls[activity.call].op : kNone;
  };
  std::unordered_map<std::uint64_t, double> blocks;  // of a kernel in an op
  const auto key = [&](std::uint32_t op, std::uint32_t row) {
    return std::uint64_t{op} * (numbers.size() + 1) + number_of[row];
  };
  for (const Activity& activity : timeline.activities)
    if (const std::uint32_t op = op_of(activity); op != kNone)
      blocks[key(op, activity.row)] += static_cast<double>(kernels[activity.row].launch.blocks());
  std::vector<double> sums(kernels.size(), 0), launches(kernels.size(), 0);
  for (const Activity& activity : timeline.activities)
    if (const std::uint32_t op = op_of(activity); op != kNone) {
      const double all = blocks[key(op, activity.row)];
      if (all <= 0) continue;
      sums[activity.row] += static_cast<double>(kernels[activity.row].launch.blocks()) / all;
      launches[activity.row] += 1;
    }
  for (std::size_t row = 0; row < kernels.size(); ++row)
    if (launches[row] > 0) parts[row] = sums[row] / launches[row];
  return parts;
}

}  // namespace purlin::analyze
