// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/host/masks.h"

#include "analyze/advise/rules/host/reads.h"
#include "analyze/advise/rules/loop.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace purlin::analyze {
namespace {

// What index and index_put make of a mask: the places of the elements that it chooses.
constexpr std::string_view kMaskOp = "aten::nonzero";
// A round has one mask or two. Loops over a few levels or heads gain little.
constexpr std::size_t kFewestMasks = 16;
constexpr double kPause = 8;  // usual distances of two masks: then it is another loop

const Op* mask_of(const Timeline& timeline, std::uint32_t op) {
  int seen = 0;
  for (; op < timeline.ops.size() && ++seen < kMostOpsAbove; op = timeline.ops[op].parent)
    if (name_in(timeline, timeline.ops[op].name) == kMaskOp) return &timeline.ops[op];
  return nullptr;
}

// The masks that one thread waited for, in order.
using Masks = std::vector<Interval>;
std::vector<Masks> masks_by_thread(const Timeline& timeline) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Masks> found;
  for (const Call& call : timeline.calls) {
    if (!waits_for_device(timeline, call)) continue;
    const Op* op = mask_of(timeline, call.op);
    if (op == nullptr) continue;
    Masks& masks = found[{call.process, call.thread}];
    if (masks.empty() || masks.back().end <= begin_of(*op))
      masks.push_back({begin_of(*op), end_of(*op)});
  }
  std::vector<Masks> out;
  for (auto& [thread, masks] : found)
    if (masks.size() >= kFewestMasks) out.push_back(std::move(masks));
  return out;
}

double usual_distance(const Masks& masks) {
  std::vector<std::int64_t> distances;
  for (std::size_t i = 1; i < masks.size(); ++i)
    distances.push_back(masks[i].begin - masks[i - 1].begin);
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return static_cast<double>(*middle);
}

void add_loops(const Masks& masks, MaskLoops& out) {
  const double pause = kPause * usual_distance(masks);
  for (std::size_t begin = 0, end = 0; begin < masks.size(); begin = end) {
    end = begin + 1;
    while (end < masks.size() &&
           static_cast<double>(masks[end].begin - masks[end - 1].begin) <= pause)
      ++end;
    if (end - begin < kFewestMasks) continue;
    out.when.push_back({masks[begin].begin, masks[end - 1].end});
    out.masks += static_cast<double>(end - begin);
  }
}

std::vector<Interval> disjoint(std::vector<Interval> all) {
  std::sort(all.begin(), all.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> out;
  for (const Interval& one : all) {
    if (out.empty() || out.back().end < one.begin)
      out.push_back(one);
    else
      out.back().end = std::max(out.back().end, one.end);
  }
  return out;
}

// Long kernels take their time over all elements as well.
Launches short_kernels(const Timeline& timeline, const std::vector<Interval>& when) {
  Launches out;
  for (std::uint32_t i = 0; i < timeline.activities.size(); ++i) {
    const Activity& one = timeline.activities[i];
    if (one.kind != ActivityKind::kKernel || one.call >= timeline.calls.size() ||
        static_cast<double>(one.duration_ns) >= kShortKernel || is_graph_node(timeline, one))
      continue;
    const std::int64_t launched = begin_of(timeline.calls[one.call]);
    const auto loop = std::partition_point(
        when.begin(), when.end(), [&](const Interval& each) { return each.end <= launched; });
    if (loop != when.end() && loop->begin <= launched) out.push_back(i);
  }
  return out;
}

}  // namespace

MaskLoops find_mask_loops(const HostView& view) {
  MaskLoops out;
  if (view.unit.kind != "step") return out;
  for (const Masks& masks : masks_by_thread(view.facts.profile->timeline)) add_loops(masks, out);
  if (out.masks * view.share < static_cast<double>(kFewestMasks)) return {};
  out.when = disjoint(std::move(out.when));
  return out;
}

void replace_mask_loops(const HostView& view, MaskLoops loops, Intervention& out) {
  if (loops.masks <= 0) return;
  double ns = 0;
  for (const Interval& loop : loops.when) ns += static_cast<double>(loop.length());
  out.evidence.push_back(
      {"loops that choose elements by a mask",
       fmt::format("{} a step, {} of the host's time", counted(loops.masks * view.share, "mask"),
                   short_ns(ns * view.share)),
       "timeline"});
  out.how.insert(
      out.how.begin(),
      "PyTorch: no tensor[mask] or nonzero() in a loop over groups: torch.where or weights of 0 "
      "and 1 over all elements, index_add_ by the number of the group, or one sort by it");
  out.change.edits.emplace_back(edit::Scale{
      Affected::of(short_kernels(view.facts.profile->timeline, loops.when)), kLoopLeft});
  out.change.edits.emplace_back(edit::ScaleHost{kLoopLeft, std::move(loops.when), kNone});
}

}  // namespace purlin::analyze
