// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/recorder.h"

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kLeastOwn = 0.2;  // of a recorded time is the program's
// A recorder of ops adds no more than so much to the host's time for each op and call. A long op on
// the host itself is not slowed, and Python between two ops neither. 50 pairs on an H100 whose
// host sets the pace: 1.9 us an event in the median, 4.4 at 90 %.
constexpr double kMostOfOp = 5'000;

}  // namespace

HostInflation host_inflation(const Profile& profile) {
  const auto& notes = profile.coverage.notes;
  const bool merged = std::any_of(notes.begin(), notes.end(), [](const CoverageNote& note) {
    return note.cause == "torch_trace";  // the timeline is Kineto's
  });
  if (profile.source == "kineto" || merged) return {1.55, 0, {0.1 / 0.55, 1, 1.2 / 0.55}, true};
  if (profile.source == "purlin") return {1, 1'100, {0.45, 1, 1.45}};
  if (profile.source == "nsys") return {1, 1'500, {0.33, 1, 2.3}};
  return {1, 1'500, {0, 1, 3}};
}

void take_off_recorder(const Graph& graph, const HostInflation& inflation, double amount,
                       Weights& weights) {
  const double factor = 1 + amount * (inflation.factor - 1);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const EdgeKind kind = graph.edges[i].kind;
    const bool call = kind == EdgeKind::kCall;
    if ((!call && kind != EdgeKind::kHostTime && kind != EdgeKind::kHandOver) || weights[i] <= 0)
      continue;
    double added = weights[i] - weights[i] / factor;
    if (inflation.ops && graph.edges[i].ops >= 0)
      added = std::min(added, amount * kMostOfOp * (1 + static_cast<double>(graph.edges[i].ops)));
    const double left = weights[i] - added - (call ? amount * inflation.call_ns : 0);
    weights[i] = std::max(kLeastOwn * weights[i], left);
  }
}

}  // namespace purlin::analyze
