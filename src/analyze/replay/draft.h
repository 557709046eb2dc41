// SPDX-License-Identifier: Apache-2.0
// A graph under construction: nodes and edges in any order, with observed delays. Each function
// draws the edges of one kind; finish() chooses the weights and puts the nodes in order. Internal
// to replay.
#pragma once

#include "analyze/replay/graph.h"
#include "analyze/timeline/streams.h"

#include <cstdint>
#include <vector>

namespace purlin::analyze {

struct Draft {
  Draft(const Profile& profile, const ReplayWindow& window);

  const Profile& profile;
  const Timeline& timeline;
  Streams streams;
  Graph graph;
  std::vector<std::int64_t> times;  // of each node
  std::vector<Edge> edges;          // weight: observed delay

  std::uint32_t add_node(std::int64_t at);
  void add_edge(std::uint32_t from, std::uint32_t to, EdgeKind kind);
  // Of the outermost call around it.
  NodePair of_call(std::uint32_t call) const;
  // When the host asked for it: the begin of its call; its own begin where that is not known.
  std::int64_t launched(const Activity& activity) const;
};

void draft_host(Draft& draft);         // threads, and hand-over between them
void draft_device(Draft& draft);       // launches, streams, events
void draft_waits(Draft& draft);        // calls that wait, and full queues
void draft_collectives(Draft& draft);  // ranks
Graph finish(Draft draft);

}  // namespace purlin::analyze
