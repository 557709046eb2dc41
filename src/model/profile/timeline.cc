// SPDX-License-Identifier: Apache-2.0
#include "model/profile/timeline.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace purlin {
namespace {

// Sorts records by a key, stably, and returns for each old index its new one.
template <typename Record, typename Key>
std::vector<std::uint32_t> sort_by(std::vector<Record>& records, Key key) {
  const auto less = [&](const Record& a, const Record& b) { return key(a) < key(b); };
  std::vector<std::uint32_t> moved;
  if (std::is_sorted(records.begin(), records.end(), less)) return moved;
  std::vector<std::uint32_t> order(records.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return less(records[a], records[b]); });
  moved.resize(records.size());
  for (std::uint32_t to = 0; to < order.size(); ++to) moved[order[to]] = to;
  // Along the cycles of the permutation, so that a large timeline is not held twice.
  for (std::uint32_t first = 0; first < order.size(); ++first) {
    if (order[first] == first) continue;
    const Record held = records[first];
    std::uint32_t to = first;
    while (order[to] != first) {
      const std::uint32_t from = order[to];
      records[to] = records[from];
      order[to] = to;
      to = from;
    }
    records[to] = held;
    order[to] = to;
  }
  return moved;
}

void mend(std::uint32_t& index, const std::vector<std::uint32_t>& moved) {
  if (index < moved.size()) index = moved[index];
}

// Removes records for which `early` holds, and returns for each old index its new one or kNone.
template <typename Record, typename Early>
std::vector<std::uint32_t> remove_if_early(std::vector<Record>& records, Early early) {
  std::vector<std::uint32_t> moved(records.size(), kNone);
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    if (early(records[i])) continue;
    moved[i] = kept;
    records[kept++] = records[i];
  }
  records.resize(kept);
  return moved;
}

}  // namespace

std::size_t event_count(const Timeline& timeline) {
  return timeline.activities.size() + timeline.calls.size() + timeline.ops.size() +
         timeline.ranges.size();
}

void sort_timeline(Timeline& timeline) {
  // The longer of two that start together first, so that a parent precedes its children. ~n falls
  // as n rises, and unlike -n it is defined for every n: durations may be a hostile file's.
  const auto by_start = [](const auto& r) { return std::make_pair(r.start_ns, ~r.duration_ns); };
  const std::vector<std::uint32_t> ops = sort_by(timeline.ops, by_start);
  for (Op& op : timeline.ops) mend(op.parent, ops);
  for (Call& call : timeline.calls) mend(call.op, ops);
  const std::vector<std::uint32_t> calls = sort_by(timeline.calls, by_start);
  for (Activity& activity : timeline.activities) mend(activity.call, calls);
  sort_by(timeline.ranges, by_start);
  sort_by(timeline.activities,
          [](const Activity& a) { return std::make_tuple(a.device, a.start_ns, a.stream); });
}

void drop_before(Timeline& timeline, const std::vector<std::int64_t>& from_ns) {
  const auto early = [&](const auto& record) {
    return record.process < from_ns.size() && record.start_ns < from_ns[record.process];
  };
  const std::vector<std::uint32_t> ops = remove_if_early(timeline.ops, early);
  for (Op& op : timeline.ops) mend(op.parent, ops);
  remove_if_early(timeline.activities, early);
  std::vector<bool> used(timeline.calls.size());
  for (const Activity& activity : timeline.activities)
    if (activity.call < used.size()) used[activity.call] = true;
  std::size_t index = 0;
  const std::vector<std::uint32_t> calls = remove_if_early(
      timeline.calls, [&](const Call& call) { return !used[index++] && early(call); });
  for (Call& call : timeline.calls) mend(call.op, ops);
  for (Activity& activity : timeline.activities) mend(activity.call, calls);
  remove_if_early(timeline.ranges, early);
}

}  // namespace purlin
