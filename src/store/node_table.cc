// SPDX-License-Identifier: Apache-2.0
#include "store/node_table.h"

#include <algorithm>

namespace purlin::store {

void NodeTable::add(const NodeState& state) {
  const auto [at, is_new] = nodes_.emplace(std::pair(state.node, state.boot), state);
  if (is_new) return;
  NodeState& all = at->second;
  const bool later = state.last_sequence >= all.last_sequence;
  if (later) {
    all.tool_version = state.tool_version;
    all.last_received_ns = state.last_received_ns;
    all.skew_ns = state.skew_ns;
    all.collector_rss_bytes = state.collector_rss_bytes;
    all.shed = state.shed;
    all.spool = state.spool;
  }
  all.first_begin_ns = std::min(all.first_begin_ns, state.first_begin_ns);
  all.last_end_ns = std::max(all.last_end_ns, state.last_end_ns);
  all.first_sequence = std::min(all.first_sequence, state.first_sequence);
  all.last_sequence = std::max(all.last_sequence, state.last_sequence);
  all.batches += state.batches;
  all.collector_cpu_ns += state.collector_cpu_ns;
}

std::vector<NodeState> NodeTable::nodes() const {
  std::vector<NodeState> nodes;
  for (const auto& [key, state] : nodes_) {
    nodes.push_back(state);
    const std::uint64_t expected = state.last_sequence - state.first_sequence + 1;
    nodes.back().missing = expected > state.batches ? expected - state.batches : 0;
  }
  return nodes;
}

}  // namespace purlin::store
