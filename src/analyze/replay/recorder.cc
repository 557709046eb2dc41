// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/recorder.h"

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kLeast = 0.2;  // of a recorded time is the program's own

}  // namespace

RecorderOverhead recorder_overhead(const std::string& source) {
  if (source == "kineto") return {{1'100, 2'300, 4'500}, {500, 1'300, 2'000}};
  if (source == "purlin") return {{500, 1'100, 1'600}, {0, 0, 0}};
  if (source == "nsys") return {{500, 1'500, 3'500}, {0, 500, 1'500}};
  return {{0, 1'500, 4'500}, {0, 0, 0}};
}

void take_off_recorder(const Graph& graph, double call_ns, double op_ns, Weights& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Edge& edge = graph.edges[i];
    double overhead = 0;
    if (edge.kind == EdgeKind::kCall) overhead = call_ns;
    if (edge.kind == EdgeKind::kHostTime) overhead = op_ns * edge.ops;
    if (overhead > 0) weights[i] = std::max(kLeast * weights[i], weights[i] - overhead);
  }
}

}  // namespace purlin::analyze
