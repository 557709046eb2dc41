// SPDX-License-Identifier: Apache-2.0
#include "profile/ops/graph_captures.h"

#include <map>

namespace purlin::profile {

CaptureEdge capture_edge(std::string_view call) {
  if (call.find("StreamBeginCapture") != std::string_view::npos) return CaptureEdge::kBegin;
  if (call.find("StreamEndCapture") != std::string_view::npos) return CaptureEdge::kEnd;
  return CaptureEdge::kNone;
}

std::vector<bool> inside_captures(std::size_t calls,
                                  const std::function<CaptureCall(std::size_t)>& call_at) {
  // Ends that come before any begin belong to captures that were open when the recording began.
  std::map<std::uint32_t, int> open, at_begin;
  for (std::size_t i = 0; i < calls; ++i) {
    const CaptureCall call = call_at(i);
    if (call.edge == CaptureEdge::kBegin) ++open[call.process];
    if (call.edge == CaptureEdge::kEnd && --open[call.process] < 0) {
      open[call.process] = 0;
      ++at_begin[call.process];
    }
  }
  if (open.empty()) return {};
  std::vector<bool> inside(calls, false);
  open = at_begin;
  for (std::size_t i = 0; i < calls; ++i) {
    const CaptureCall call = call_at(i);
    const auto count = open.find(call.process);
    if (call.edge == CaptureEdge::kBegin)
      ++open[call.process];
    else if (call.edge == CaptureEdge::kEnd)
      --open[call.process];
    else
      inside[i] = count != open.end() && count->second > 0;
  }
  return inside;
}

std::size_t set_captured_apart(Timeline& timeline) {
  std::vector<std::uint8_t> edges(timeline.names.size(), 0);  // by name: CaptureEdge + 1
  const std::vector<bool> inside = inside_captures(timeline.calls.size(), [&](std::size_t i) {
    const Call& call = timeline.calls[i];
    std::uint8_t& edge = edges[call.name];
    if (edge == 0)
      edge =
          static_cast<std::uint8_t>(static_cast<int>(capture_edge(timeline.names[call.name])) + 1);
    return CaptureCall{call.process, static_cast<CaptureEdge>(edge - 1)};
  });
  if (inside.empty()) return 0;
  std::vector<bool> has_work(timeline.calls.size(), false);
  for (const Activity& activity : timeline.activities)
    if (activity.call < has_work.size()) has_work[activity.call] = true;
  std::size_t launches = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    Call& call = timeline.calls[i];
    if (!inside[i] || has_work[i]) continue;
    launches += call.kind == CallKind::kLaunch ? 1 : 0;
    if (call.kind == CallKind::kLaunch || call.kind == CallKind::kCopy)
      call.kind = CallKind::kOther;
  }
  return launches;
}

CoverageNote captured_note(std::size_t launches) {
  return {"launches_captured",
          "launching calls between BeginCapture and EndCapture: they made graphs, and launched "
          "nothing",
          static_cast<double>(launches), 0};
}

}  // namespace purlin::profile
