// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/host/slow_op.h"

#include <algorithm>
#include <map>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr double kSlowNs = 1e6;  // an operator's own work usually takes 5 to 100 us

double length_of(const auto& record) { return static_cast<double>(interval_of(record).length()); }

// Of each op: its duration less those of inner operators and of its API calls.
std::vector<double> own_times(const Timeline& timeline) {
  std::vector<double> own;
  own.reserve(timeline.ops.size());
  for (const Op& op : timeline.ops) own.push_back(length_of(op));
  for (const Op& op : timeline.ops)
    if (op.parent < own.size()) own[op.parent] -= length_of(op);
  for (const Call& call : timeline.calls)
    if (call.op < own.size()) own[call.op] -= length_of(call);
  return own;
}

void add_interval(SlowOp& slow, const Interval& interval) {
  if (!slow.when.empty() && interval.begin < slow.when.back().end)
    slow.when.back().end = std::max(slow.when.back().end, interval.end);
  else
    slow.when.push_back(interval);
}

}  // namespace

std::optional<SlowOp> find_slow_op(const Timeline& timeline, double least_instances) {
  const std::vector<double> own = own_times(timeline);
  std::map<std::pair<std::uint32_t, std::uint32_t>, SlowOp> by_name;  // process and name
  std::vector<std::uint32_t> order(timeline.ops.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return timeline.ops[a].start_ns < timeline.ops[b].start_ns;
  });
  for (const std::uint32_t i : order) {
    const Op& op = timeline.ops[i];
    SlowOp& slow = by_name[{op.process, op.name}];
    if (own[i] < kSlowNs) {
      slow.others += 1;
      continue;
    }
    slow.own_ns += own[i];
    slow.instances += 1;
    add_interval(slow, interval_of(op));
  }
  const auto most = std::max_element(
      by_name.begin(), by_name.end(),
      [](const auto& a, const auto& b) { return a.second.own_ns < b.second.own_ns; });
  if (most == by_name.end() || most->second.instances < std::max(1.0, least_instances))
    return std::nullopt;
  SlowOp out = std::move(most->second);
  out.process = most->first.first;
  if (most->first.second < timeline.names.size()) out.name = timeline.names[most->first.second];
  return out;
}

}  // namespace purlin::analyze
