// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/graph.h"

#include "analyze/replay/draft.h"
#include "analyze/timeline/host.h"

#include <algorithm>
#include <utility>

namespace purlin::analyze {

bool is_delay(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kHandOver:
    case EdgeKind::kWait:
    case EdgeKind::kLaunch:
    case EdgeKind::kGraphLaunch:
    case EdgeKind::kStream:
    case EdgeKind::kGraphOrder:
    case EdgeKind::kEvent:
      return true;
    case EdgeKind::kStart:
    case EdgeKind::kHostTime:
    case EdgeKind::kCall:
    case EdgeKind::kQueueFull:
    case EdgeKind::kRun:
    case EdgeKind::kTransfer:
      return false;
  }
  return false;
}

std::string_view to_text(EdgeKind kind) {
  switch (kind) {
    case EdgeKind::kStart:
      return "start";
    case EdgeKind::kHostTime:
      return "host time";
    case EdgeKind::kCall:
      return "host call";
    case EdgeKind::kHandOver:
      return "hand-over between threads";
    case EdgeKind::kQueueFull:
      return "full queue";
    case EdgeKind::kWait:
      return "return from a wait";
    case EdgeKind::kLaunch:
      return "launch";
    case EdgeKind::kGraphLaunch:
      return "graph launch";
    case EdgeKind::kStream:
      return "stream order";
    case EdgeKind::kGraphOrder:
      return "graph order";
    case EdgeKind::kEvent:
      return "event";
    case EdgeKind::kRun:
      return "device work";
    case EdgeKind::kTransfer:
      return "collective";
  }
  return "";
}

Weights recorded_weights(const Graph& graph) {
  Weights out(graph.edges.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = graph.edges[i].weight;
  return out;
}

Weights constant_weights(const Graph& graph) {
  Weights out = recorded_weights(graph);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (is_delay(graph.edges[i].kind))
      out[i] = graph.constant[static_cast<std::size_t>(graph.edges[i].kind)];
  return out;
}

std::vector<double> replay(const Graph& graph, const Weights& weights) {
  std::vector<double> times(graph.recorded.size());
  for (std::uint32_t node = 1; node < times.size(); ++node) {
    double latest = 0;
    for (std::uint32_t e = graph.first_edge[node]; e < graph.first_edge[node + 1]; ++e)
      latest = std::max(latest, times[graph.edges[e].from] + weights[e]);
    times[node] = latest;
  }
  return times;
}

double span_of(const Graph& graph, const std::vector<double>& times) {
  double end = 0;
  for (const NodePair& activity : graph.activities)
    if (activity.end != kNone) end = std::max(end, times[activity.end]);
  const double begin = static_cast<double>(graph.window.begin - graph.origin_ns);
  return std::max(0.0, end - begin);
}

Graph build_graph(const Profile& profile, const ReplayWindow& window) {
  if (!knows_calls(profile.timeline) || profile.timeline.activities.empty()) return {};
  Draft draft(profile, window);
  draft_host(draft);
  draft_device(draft);
  draft_waits(draft);
  draft_collectives(draft);
  if (draft.times.size() < 2) return {};  // nothing happens in the window
  return finish(std::move(draft));
}

}  // namespace purlin::analyze
