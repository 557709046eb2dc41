// SPDX-License-Identifier: Apache-2.0
// Applier: carries out a change (change.h) on a graph: new weights in ns, in one scenario, and what
// of the timeline is gone. Profile and graph must outlive it. Immutable, so threads may share it.
// An edit of work outside of the graph's window changes nothing. Internal to replay.
#pragma once

#include "analyze/replay/change.h"
#include "analyze/replay/graph.h"

#include <unordered_map>
#include <vector>

namespace purlin::analyze {

struct Applied {
  Weights weights;
  std::vector<bool> gone_activities, gone_calls;  // by index into the timeline
  // What overlaps still takes its turn: no span is shorter than the work of one device moved aside.
  double least_span_ns = 0;
};

class Applier {
 public:
  Applier(const Profile& profile, const Graph& graph);
  Applied apply(const Change& change, Scenario scenario, Weights base) const;

 private:
  friend class EditApplier;
  std::vector<std::uint32_t> find(const Affected& work) const;

  const Profile& profile_;
  const Graph& graph_;
  std::vector<std::vector<std::uint32_t>> by_kernel_, by_copy_;  // activities of the window by row
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> launched_;  // by outermost call
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> of_op_;     // calls of each op
};

}  // namespace purlin::analyze
