// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/autograd.h"

#include <cstdint>
#include <map>
#include <utility>

namespace purlin::profile::flow {
namespace {

using Sequence = std::pair<std::uint32_t, std::int64_t>;  // thread, number

}  // namespace

std::vector<std::uint32_t> find_differentiated(const ExecutionTrace& trace) {
  std::map<Sequence, std::uint32_t> backward;
  // Ops have the next number. The last one of a number is the op that took it.
  std::map<Sequence, std::uint32_t> taker;
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    const TraceNode& node = trace.nodes[i];
    if (node.sequence < 0) continue;
    if (node.is_op()) taker[{node.thread, node.sequence}] = i;
    if (node.scope == kBackwardScope)
      backward.emplace(Sequence{node.forward_thread, node.sequence}, i);
  }
  std::vector<std::uint32_t> found(trace.nodes.size(), 0);
  std::vector<bool> around(trace.nodes.size(), false);
  for (const auto& [sequence, node] : taker) {
    const auto made = backward.find(sequence);
    if (made == backward.end()) continue;
    found[node] = made->second;
    std::uint32_t at = node;
    while (trace.nodes[at].parent != at) {
      at = trace.nodes[at].parent;
      if (!trace.nodes[at].is_op()) break;
      around[at] = true;
    }
  }
  for (std::size_t i = 0; i < trace.nodes.size(); ++i)
    if (trace.nodes[i].parent != i && found[i] == 0) found[i] = found[trace.nodes[i].parent];
  for (std::size_t i = 0; i < trace.nodes.size(); ++i)
    if (around[i] && found[i] == 0) found[i] = kSomeNode;
  return found;
}

std::uint32_t backward_node_around(const ExecutionTrace& trace, std::uint32_t node) {
  while (trace.nodes[node].scope != kBackwardScope) {
    if (trace.nodes[node].parent == node) return 0;
    node = trace.nodes[node].parent;
  }
  return node;
}

}  // namespace purlin::profile::flow
