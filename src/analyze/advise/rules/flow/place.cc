// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/flow/place.h"

#include "analyze/advise/rules/flow/autograd.h"
#include "analyze/advise/rules/op_facts.h"
#include "analyze/advise/rules/walk.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"

#include <algorithm>
#include <cstddef>

namespace purlin::analyze {
namespace {

// The shortest range of the program around an op; "" without one.
std::string_view range_of(const Timeline& timeline, const Op& op) {
  constexpr std::ptrdiff_t kMostLooks = 256;
  auto at = std::partition_point(timeline.ranges.begin(), timeline.ranges.end(),
                                 [&](const Range& range) { return range.start_ns <= op.start_ns; });
  const Range* out = nullptr;
  for (std::ptrdiff_t looks = 0; at != timeline.ranges.begin() && looks < kMostLooks; ++looks) {
    const Range& range = *--at;
    if (range.kind != RangeKind::kUser || range.process != op.process ||
        range.thread != op.thread || end_of(range) < end_of(op))
      continue;
    if (out == nullptr || range.duration_ns < out->duration_ns) out = &range;
  }
  return out != nullptr ? name_in(timeline, out->name) : std::string_view();
}

}  // namespace

std::vector<std::string_view> names_around(const Timeline& timeline, std::uint32_t op) {
  std::vector<std::string_view> out;
  for (int seen = 0; op < timeline.ops.size() && ++seen < kMostOpsAround;
       op = timeline.ops[op].parent)
    out.push_back(name_in(timeline, timeline.ops[op].name));
  return out;
}

bool in_backward_pass(const Timeline& timeline, std::uint32_t op) {
  const std::vector<std::string_view> names = names_around(timeline, op);
  return std::any_of(names.begin(), names.end(),
                     [](std::string_view name) { return starts_with(name, "autograd::engine"); });
}

std::uint32_t backward_node_of(const Timeline& timeline, std::uint32_t op) {
  for (int seen = 0; op < timeline.ops.size() && ++seen < kMostOpsAround;
       op = timeline.ops[op].parent)
    if (starts_with(name_in(timeline, timeline.ops[op].name), kBackwardNode)) return op;
  return kNone;
}

std::string place_of(const Timeline& timeline, std::uint32_t op) {
  std::string_view node, outermost;
  for (const std::string_view name : names_around(timeline, op)) {
    outermost = name;
    if (starts_with(name, kBackwardNode)) node = name.substr(kBackwardNode.size());
  }
  if (!node.empty()) return std::string(node);
  const std::string_view range = range_of(timeline, timeline.ops[op]);
  return std::string(range.empty() ? outermost : range);
}

}  // namespace purlin::analyze
