// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/op_facts.h"

#include "analyze/advise/rules/walk.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"

#include <algorithm>

namespace purlin::analyze {

bool named_in(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool same_op(const Timeline& timeline, const Activity& a, const Activity& b) {
  return a.call < timeline.calls.size() && b.call < timeline.calls.size() &&
         timeline.calls[a.call].op != kNone &&
         timeline.calls[a.call].op == timeline.calls[b.call].op;
}

const Op* outermost_op(const Timeline& timeline, const Activity& activity,
                       std::span<const std::string_view> names) {
  if (activity.call >= timeline.calls.size()) return nullptr;
  const Op* out = nullptr;
  int seen = 0;
  for (std::uint32_t op = timeline.calls[activity.call].op;
       op < timeline.ops.size() && ++seen < kMostOpsAround; op = timeline.ops[op].parent)
    if (named_in(names, name_in(timeline, timeline.ops[op].name))) out = &timeline.ops[op];
  return out;
}

bool in_backward(const Timeline& timeline, const Activity& activity) {
  if (activity.call >= timeline.calls.size()) return false;
  int seen = 0;
  for (std::uint32_t op = timeline.calls[activity.call].op;
       op < timeline.ops.size() && ++seen < kMostOpsAround; op = timeline.ops[op].parent)
    if (starts_with(name_in(timeline, timeline.ops[op].name), "autograd::engine")) return true;
  return false;
}

std::vector<std::vector<double>> input_extents(const Timeline& timeline, const Op& op) {
  const std::string_view text = name_in(timeline, op.shape);
  std::vector<std::vector<double>> out;
  if (text.empty() || text.find('=') != std::string_view::npos) return out;
  for (const std::string& input : split(text, ',')) {
    std::vector<double> extents;
    for (const std::string& extent : split(input, 'x')) {
      const auto number = parse_int(extent);
      if (!number || *number < 0) return out;
      extents.push_back(static_cast<double>(*number));
    }
    out.push_back(std::move(extents));
  }
  return out;
}

double elements_of(const std::vector<double>& extents) {
  double out = 1;
  for (const double extent : extents) out *= extent;
  return out;
}

std::vector<std::vector<double>> input_extents(const Timeline& timeline, const Activity& activity) {
  if (activity.call >= timeline.calls.size()) return {};
  const std::uint32_t op = timeline.calls[activity.call].op;
  return op < timeline.ops.size() ? input_extents(timeline, timeline.ops[op])
                                  : std::vector<std::vector<double>>{};
}

std::vector<const Op*> ops_before(const Timeline& timeline, const Activity& launch,
                                  std::span<const std::string_view> names) {
  std::vector<const Op*> out;
  if (launch.call >= timeline.calls.size()) return out;
  const Call& to = timeline.calls[launch.call];
  const auto of_thread = [&](const auto& one) {
    return one.thread == to.thread && one.process == to.process;
  };
  std::int64_t begin = 0;
  for (std::uint32_t i = launch.call; i-- > 0;) {
    const Call& call = timeline.calls[i];
    if (!of_thread(call) || call.kind == CallKind::kOther || call.kind == CallKind::kAllocation)
      continue;
    begin = end_of(call);
    break;
  }
  auto op = std::partition_point(timeline.ops.begin(), timeline.ops.end(),
                                 [&](const Op& one) { return one.start_ns < begin; });
  for (; op != timeline.ops.end() && op->start_ns < to.start_ns; ++op)
    if (of_thread(*op) && named_in(names, name_in(timeline, op->name))) out.push_back(&*op);
  return out;
}

}  // namespace purlin::analyze
