// SPDX-License-Identifier: Apache-2.0
// The chain that the last work of the window waits for, from its end back to the window's begin.
#include "analyze/replay/replayer.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace purlin::analyze {
namespace {

struct NodeOwner {  // of a node
  std::uint32_t activity = kNone, call = kNone;
};

std::vector<NodeOwner> owners_of(const Graph& graph) {
  std::vector<NodeOwner> out(graph.recorded.size());
  for (std::uint32_t i = 0; i < graph.activities.size(); ++i)
    if (const NodePair nodes = graph.activities[i]; nodes.begin != kNone)
      out[nodes.begin].activity = out[nodes.end].activity = i;
  for (std::uint32_t i = 0; i < graph.calls.size(); ++i)
    if (const NodePair nodes = graph.calls[i]; nodes.begin != kNone)
      out[nodes.begin].call = out[nodes.end].call = i;
  return out;
}

std::uint32_t last_node(const Graph& graph, const std::vector<double>& times) {
  std::uint32_t last = 0;
  for (const NodePair& activity : graph.activities)
    if (activity.end != kNone && (last == 0 || times[activity.end] > times[last]))
      last = activity.end;
  return last;
}

}  // namespace

std::vector<CriticalPart> Replayer::critical_path(const Replayed& replayed) const {
  const std::vector<double>& times = replayed.times;
  const std::vector<NodeOwner> owners = owners_of(graph_);
  const Timeline& timeline = profile_.timeline;
  const double begin = static_cast<double>(graph_.window.begin - graph_.origin_ns);
  using Key = std::tuple<EdgeKind, bool, std::uint32_t, std::uint32_t>;
  std::map<Key, CriticalPart> parts;
  std::uint32_t node = last_node(graph_, times);
  while (node != 0 && times[node] > begin) {
    std::uint32_t binding = graph_.first_edge[node];
    const auto arrival = [&](std::uint32_t e) {
      return times[graph_.edges[e].from] + replayed.applied.weights[e];
    };
    for (std::uint32_t e = binding; e < graph_.first_edge[node + 1]; ++e)
      if (arrival(e) > arrival(binding)) binding = e;
    if (binding >= graph_.first_edge[node + 1]) break;
    const Edge& edge = graph_.edges[binding];
    const double ns = times[node] - std::max(begin, times[edge.from]);
    const NodeOwner owner = owners[node];
    Key key{edge.kind, false, kNone, kNone};
    if (edge.kind == EdgeKind::kRun || edge.kind == EdgeKind::kTransfer) {
      const Activity& activity = timeline.activities[owner.activity];
      key = {edge.kind, activity.kind == ActivityKind::kKernel, activity.row, kNone};
    } else if (owner.call != kNone) {
      const Call& call = timeline.calls[owner.call];
      const std::uint32_t op = call.op < timeline.ops.size() ? timeline.ops[call.op].name : kNone;
      key = {edge.kind, false, call.name, op};
    }
    CriticalPart& part = parts[key];
    part.kind = edge.kind;
    part.activity = owner.activity;
    part.call = owner.call;
    part.ns += ns / steps_;
    part.count += 1 / steps_;
    node = edge.from;
  }
  std::vector<CriticalPart> out;
  for (const auto& [key, part] : parts) out.push_back(part);
  std::stable_sort(out.begin(), out.end(),
                   [](const CriticalPart& a, const CriticalPart& b) { return a.ns > b.ns; });
  return out;
}

}  // namespace purlin::analyze
