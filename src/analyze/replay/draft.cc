// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/draft.h"

#include "analyze/timeline/median.h"

#include <algorithm>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr double kUnexplained = 20'000;  // ns; a delay beyond its kind's constant by this
constexpr std::int64_t kLongBefore = 50'000;
constexpr double kWaitsOwn = 5'000;  // ns that a waiting call takes itself

// What an edge has where the recording shows none of its kind, ns.
constexpr std::array<double, kEdgeKinds> kUsual = {0,      0,     0,   20'000, 0, 5'000, 5'000,
                                                   10'000, 1'000, 500, 2'000,  0, 0};
constexpr std::size_t kFew = 5;  // edges: with fewer that are clear, the likely ones count too

class Finisher {
 public:
  explicit Finisher(Draft draft) : draft_(std::move(draft)), graph_(std::move(draft_.graph)) {}

  Graph run() {
    start_from_origin();
    group(draft_.edges);
    find_constants();
    for (std::uint32_t node = 1; node < draft_.times.size(); ++node) weigh(node);
    order();
    return std::move(graph_);
  }

 private:
  std::span<Edge> into(std::uint32_t node) {
    return {draft_.edges.data() + first_[node], draft_.edges.data() + first_[node + 1]};
  }

  // By `to`; first_ is where each node's begin.
  void group(std::vector<Edge>& edges) {
    std::stable_sort(edges.begin(), edges.end(),
                     [](const Edge& a, const Edge& b) { return a.to < b.to; });
    first_.assign(draft_.times.size() + 1, 0);
    for (const Edge& edge : edges) ++first_[edge.to + 1];
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  }

  double since_origin(std::uint32_t node) const {
    return static_cast<double>(draft_.times[node] - graph_.origin_ns);
  }

  // What nothing in the window holds up has its recorded time.
  void start_from_origin() {
    graph_.origin_ns = *std::min_element(draft_.times.begin() + 1, draft_.times.end());
    draft_.times[0] = graph_.origin_ns;
    for (Edge& edge : draft_.edges)
      if (edge.kind == EdgeKind::kStart) edge.weight = since_origin(edge.to);
    std::vector<bool> held(draft_.times.size());
    for (const Edge& edge : draft_.edges) held[edge.to] = true;
    for (std::uint32_t node = 1; node < held.size(); ++node)
      if (!held[node]) draft_.add_edge(0, node, EdgeKind::kStart);
  }

  static bool competes(EdgeKind kind) {
    return kind != EdgeKind::kHostTime && kind != EdgeKind::kCall && kind != EdgeKind::kRun &&
           kind != EdgeKind::kStart;
  }

  // The median delay of a kind: of the edges that alone can have held up their node, or, where they
  // are few, of those that did by the usual delays.
  void find_constants() {
    graph_.constant = kUsual;
    std::array<std::vector<double>, kEdgeKinds> clear, likely;
    for (std::uint32_t node = 1; node < draft_.times.size(); ++node) {
      const std::span<Edge> edges = into(node);
      const Edge* binding = nullptr;
      for (const Edge& edge : edges)
        if (competes(edge.kind) && (binding == nullptr || arrival(edge) > arrival(*binding)))
          binding = &edge;
      if (binding == nullptr || !is_delay(binding->kind)) continue;
      const auto kind = static_cast<std::size_t>(binding->kind);
      // Not where the call itself, or what came before the window, took longer.
      const bool held = std::all_of(edges.begin(), edges.end(), [&](const Edge& edge) {
        return edge.kind == EdgeKind::kCall ? edge.weight > binding->weight
                                            : edge.kind != EdgeKind::kStart;
      });
      if (!held) continue;
      likely[kind].push_back(binding->weight);
      if (is_clear(*binding, edges)) clear[kind].push_back(binding->weight);
    }
    for (std::size_t kind = 0; kind < kEdgeKinds; ++kind) {
      auto& values = clear[kind].size() >= kFew ? clear[kind] : likely[kind];
      if (values.empty()) continue;
      graph_.constant[kind] = median_of(values);
    }
  }

  // A launch after all other work had ended; work that was asked for long before its stream was
  // free.
  bool is_clear(const Edge& one, std::span<const Edge> edges) const {
    const bool launch = one.kind == EdgeKind::kLaunch || one.kind == EdgeKind::kGraphLaunch;
    return std::all_of(edges.begin(), edges.end(), [&](const Edge& other) {
      if (&other == &one || !is_delay(other.kind)) return true;
      return draft_.times[other.from] + (launch ? 0 : kLongBefore) <= draft_.times[one.from];
    });
  }

  double arrival(const Edge& edge) const {
    return since_origin(edge.from) + graph_.constant[static_cast<std::size_t>(edge.kind)];
  }

  void weigh(std::uint32_t node) {
    const std::span<Edge> edges = into(node);
    const bool call_ends = std::any_of(
        edges.begin(), edges.end(), [](const Edge& edge) { return edge.kind == EdgeKind::kCall; });
    if (call_ends) return weigh_call(edges);
    Edge* binding = nullptr;
    bool runs = false, fixed = false;
    for (Edge& edge : edges) {
      runs = runs || edge.kind == EdgeKind::kRun;
      fixed = fixed || edge.kind == EdgeKind::kStart;
      if (competes(edge.kind) && edge.kind != EdgeKind::kTransfer &&
          (binding == nullptr || arrival(edge) > arrival(*binding)))
        binding = &edge;
    }
    if (runs) return;  // collectives set their own
    if (binding == nullptr) return;
    const bool host = std::any_of(edges.begin(), edges.end(), [](const Edge& edge) {
      return edge.kind == EdgeKind::kHostTime;
    });
    for (Edge& edge : edges)
      if ((fixed || &edge != binding) && competes(edge.kind))
        edge.weight = std::min(edge.weight, graph_.constant[static_cast<std::size_t>(edge.kind)]);
    if (host || fixed) return;  // draft_host has given the thread's own part its weight
    graph_.held += 1;
    if (binding->weight - graph_.constant[static_cast<std::size_t>(binding->kind)] > kUnexplained)
      graph_.residuals += 1;
  }

  // A call that waits takes its own time, and ends after the work. Where the work had ended before
  // the call began, the call's own time is what was observed.
  void weigh_call(std::span<Edge> edges) {
    Edge *own = nullptr, *held = nullptr;
    for (Edge& edge : edges) {
      if (edge.kind == EdgeKind::kCall) {
        own = &edge;
      } else if (held == nullptr || edge.weight < held->weight) {
        held = &edge;
      }
    }
    if (held == nullptr) return;
    const bool waited = held->weight < own->weight;
    for (Edge& edge : edges) {
      if (&edge == own) continue;
      if (!waited || &edge != held)
        edge.weight = std::min(edge.weight, graph_.constant[static_cast<std::size_t>(edge.kind)]);
    }
    if (waited) own->weight = std::min(own->weight, kWaitsOwn);
  }

  // Kahn's order. Foreign records may contradict one another; what forms a circle goes by time.
  void order() {
    const auto count = static_cast<std::uint32_t>(draft_.times.size());
    std::vector<std::uint32_t> missing(count), out_first(count + 1), out(draft_.edges.size());
    for (const Edge& edge : draft_.edges) {
      ++missing[edge.to];
      ++out_first[edge.from + 1];
    }
    for (std::size_t i = 1; i < out_first.size(); ++i) out_first[i] += out_first[i - 1];
    std::vector<std::uint32_t> fill(out_first.begin(), out_first.end() - 1);
    for (std::uint32_t e = 0; e < draft_.edges.size(); ++e) out[fill[draft_.edges[e].from]++] = e;
    place_.assign(count, kNone);
    std::vector<std::uint32_t> ready;
    std::uint32_t placed = 0;
    const auto drain = [&] {
      while (!ready.empty()) {
        const std::uint32_t node = ready.back();
        ready.pop_back();
        place_[node] = placed++;
        for (std::uint32_t i = out_first[node]; i < out_first[node + 1]; ++i) {
          const std::uint32_t to = draft_.edges[out[i]].to;
          if (place_[to] == kNone && --missing[to] == 0) ready.push_back(to);
        }
      }
    };
    ready.push_back(0);  // all others have edges from it or from one another
    drain();
    if (placed < count) {
      std::vector<std::uint32_t> left;
      for (std::uint32_t node = 1; node < count; ++node)
        if (place_[node] == kNone) left.push_back(node);
      std::stable_sort(left.begin(), left.end(), [&](std::uint32_t a, std::uint32_t b) {
        return draft_.times[a] < draft_.times[b];
      });
      for (const std::uint32_t node : left) {
        if (place_[node] != kNone) continue;
        ready.push_back(node);
        missing[node] = 0;
        drain();
      }
    }
    renumber();
  }

  void renumber() {
    std::vector<Edge> kept;
    kept.reserve(draft_.edges.size());
    for (Edge edge : draft_.edges) {
      edge.from = place_[edge.from];
      edge.to = place_[edge.to];
      if (edge.from < edge.to) {
        kept.push_back(edge);
      } else {
        graph_.broken += 1;
      }
    }
    graph_.recorded.resize(draft_.times.size());
    for (std::size_t i = 0; i < draft_.times.size(); ++i)
      graph_.recorded[place_[i]] = static_cast<double>(draft_.times[i] - graph_.origin_ns);
    for (auto* pairs : {&graph_.activities, &graph_.calls})
      for (NodePair& pair : *pairs)
        if (pair.begin != kNone) pair = {place_[pair.begin], place_[pair.end]};
    if (graph_.broken > 0) hold_by_time(kept);
    group(kept);
    graph_.first_edge = first_;
    graph_.edges = std::move(kept);
  }

  // Nodes whose binding edge was left out keep their recorded time.
  void hold_by_time(std::vector<Edge>& edges) {
    std::vector<double> reached(graph_.recorded.size(), kNever);
    for (const Edge& edge : edges)
      reached[edge.to] = std::max(reached[edge.to], graph_.recorded[edge.from] + edge.weight);
    for (std::uint32_t node = 1; node < reached.size(); ++node)
      if (reached[node] < graph_.recorded[node])
        edges.push_back({0, node, EdgeKind::kStart, kUnknownOps, graph_.recorded[node]});
  }

  Draft draft_;
  Graph graph_;
  std::vector<std::uint32_t> first_, place_;
};

}  // namespace

Draft::Draft(const Profile& of, const ReplayWindow& window)
    : profile(of), timeline(of.timeline), streams(of.timeline) {
  graph.window = window.time;
  graph.activities.resize(timeline.activities.size());
  graph.calls.resize(timeline.calls.size());
  graph.outer.resize(timeline.calls.size());
  for (std::uint32_t i = 0; i < graph.outer.size(); ++i) graph.outer[i] = i;
  times.push_back(0);  // the origin's, set by draft_host
}

std::uint32_t Draft::add_node(std::int64_t at) {
  times.push_back(at);
  return static_cast<std::uint32_t>(times.size() - 1);
}

void Draft::add_edge(std::uint32_t from, std::uint32_t to, EdgeKind kind) {
  if (from == kNone || to == kNone || from == to) return;
  edges.push_back({from, to, kind, kUnknownOps, static_cast<double>(times[to] - times[from])});
}

NodePair Draft::of_call(std::uint32_t call) const {
  return call < graph.calls.size() ? graph.calls[graph.outer[call]] : NodePair{};
}

std::int64_t Draft::launched(const Activity& activity) const {
  return activity.call < timeline.calls.size() ? begin_of(timeline.calls[activity.call])
                                               : begin_of(activity);
}

Graph finish(Draft draft) { return Finisher(std::move(draft)).run(); }

}  // namespace purlin::analyze
