// SPDX-License-Identifier: Apache-2.0
#include "profile/ops/host_links.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace purlin::profile {

// Ops nest on a thread like brackets: one pass per thread over ops and calls in order of start, the
// longer first, with the open ops on a stack.
void link_host(Timeline& timeline) {
  struct Item {
    std::uint32_t process, thread;
    std::int64_t start, duration;
    bool call;
    std::uint32_t index;
    auto key() const { return std::make_tuple(process, thread, start, call, -duration); }
  };
  std::vector<Item> items;
  if (timeline.ops.empty()) return;
  items.reserve(timeline.ops.size() + timeline.calls.size());
  for (std::uint32_t i = 0; i < timeline.ops.size(); ++i) {
    const Op& op = timeline.ops[i];
    items.push_back({op.process, op.thread, op.start_ns, op.duration_ns, false, i});
  }
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    const Call& call = timeline.calls[i];
    items.push_back({call.process, call.thread, call.start_ns, call.duration_ns, true, i});
  }
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.key() < b.key(); });
  std::vector<const Item*> open;
  for (const Item& item : items) {
    while (!open.empty() &&
           (open.back()->process != item.process || open.back()->thread != item.thread ||
            open.back()->start + open.back()->duration < item.start + item.duration ||
            open.back()->start + open.back()->duration == item.start))
      open.pop_back();
    const std::uint32_t around = open.empty() ? kNone : open.back()->index;
    if (item.call) {
      timeline.calls[item.index].op = around;
    } else {
      timeline.ops[item.index].parent = around;
      open.push_back(&item);
    }
  }
}

}  // namespace purlin::profile
