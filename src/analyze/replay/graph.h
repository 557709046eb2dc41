// SPDX-License-Identifier: Apache-2.0
// Dependency graph of a window of the timeline. Nodes are begins and ends of host calls and of
// device work; an edge says that `to` comes at least `weight` after `from`. A node's time is the
// latest that its edges ask for, so unchanged weights give the recorded times exactly.
//
// Of the edges into a node, the one that held it up in the recording keeps its observed delay; the
// others have the smaller of the observed delay and the constant of their kind. Which edges are
// drawn: docs/design/replay.md. Nodes are numbered so that edges go upwards: one pass replays.
// Values; immutable after build_graph.
#pragma once

#include "analyze/replay/window.h"
#include "model/profile/profile.h"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace purlin::analyze {

enum class EdgeKind : std::uint8_t {
  kStart,        // From before the window: a fixed time.
  kHostTime,     // Between two calls of a thread.
  kCall,         // Within a call, without the wait for a device.
  kHandOver,     // From one host thread to another.
  kQueueFull,    // A launch waits for room in the queue.
  kWait,         // The end of device work -> the end of the call that waits for it.
  kLaunch,       // Call -> the work that it launches.
  kGraphLaunch,  // Of a graph.
  kStream,       // The order of a stream.
  kGraphOrder,   // Between nodes of one graph.
  kEvent,        // Between streams.
  kRun,          // Device work under way.
  kTransfer,     // A collective: the last rank's begin -> each rank's end.
};
inline constexpr std::size_t kEdgeKinds = 13;
std::string_view to_text(EdgeKind kind);  // "host time"
bool is_delay(EdgeKind kind);             // it has a usual length

inline constexpr float kUnknownOps = -1;
struct Edge {
  std::uint32_t from = 0, to = 0;  // nodes
  EdgeKind kind = EdgeKind::kStart;
  float ops = kUnknownOps;  // that began within it, of the host's time
  double weight = 0;        // ns
};

// An edge that no longer holds.
inline constexpr double kNever = -std::numeric_limits<double>::infinity();

struct NodePair {  // of an activity or call; kNone: not in the window
  std::uint32_t begin = kNone, end = kNone;
};

struct Graph {
  Interval window;
  std::int64_t origin_ns = 0;               // Node 0 is this time.
  std::vector<double> recorded;             // Of each node, ns after the origin.
  std::vector<Edge> edges;                  // By `to`.
  std::vector<std::uint32_t> first_edge;    // Of each node, and one more.
  std::vector<NodePair> activities, calls;  // By index into the timeline.
  std::vector<std::uint32_t> outer;         // Of each call: the outermost around it, or itself.
  std::array<double, kEdgeKinds> constant = {};  // Ns; of the kinds that are delays.
  // What could not be explained.
  double work = 0, unlinked = 0;      // Activities in the window; without their call.
  double waits = 0, unrecovered = 0;  // Calls that wait; without the work they wait for.
  double held = 0, residuals = 0;     // Begins of work; held up > 20 us by nothing known.
  double early = 0;                   // Work that begins before its call: clocks differ.
  double broken = 0;                  // Edges left out, because they formed a circle.
  // Of collectives that are coupled over ranks: their time, and the part until the last rank came.
  double collective_ns = 0, collective_wait_ns = 0;
  bool empty() const { return recorded.size() < 2; }
  std::span<const Edge> into(std::uint32_t node) const {
    return {edges.data() + first_edge[node], edges.data() + first_edge[node + 1]};
  }
};

// The timeline must be sorted. Empty where no call of the host is known.
Graph build_graph(const Profile& profile, const ReplayWindow& window);

// Edge weights of one scenario, in the order of Graph::edges.
using Weights = std::vector<double>;
Weights recorded_weights(const Graph& graph);
// Every delay is the constant of its kind: what is left is the error of the model.
Weights constant_weights(const Graph& graph);

// The time of each node. One pass.
std::vector<double> replay(const Graph& graph, const Weights& weights);
// The end of the last device work.
double span_of(const Graph& graph, const std::vector<double>& times);

}  // namespace purlin::analyze
