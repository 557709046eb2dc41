// SPDX-License-Identifier: Apache-2.0
#include "profile/import/flow/autograd.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace purlin::profile::flow {
namespace {

constexpr int kMaxNesting = 64;  // of ops, far beyond what PyTorch has

using Sequence = std::pair<std::uint32_t, std::int64_t>;  // thread, number

}  // namespace

std::vector<bool> find_differentiated(const ExecutionTrace& trace) {
  std::set<Sequence> backward;
  // Ops have the next number. The last one of a number is the op that took it.
  std::map<Sequence, std::uint32_t> taker;
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i) {
    const TraceNode& node = trace.nodes[i];
    if (node.sequence < 0) continue;
    if (node.is_op()) taker[{node.thread, node.sequence}] = i;
    if (node.scope == kBackwardScope) backward.insert({node.forward_thread, node.sequence});
  }
  std::vector<bool> found(trace.nodes.size(), false), around(trace.nodes.size(), false);
  for (const auto& [sequence, node] : taker) {
    if (!backward.contains(sequence)) continue;
    found[node] = true;
    std::uint32_t at = node;
    for (int depth = 0; depth < kMaxNesting && trace.nodes[at].parent != at; ++depth) {
      at = trace.nodes[at].parent;
      if (!trace.nodes[at].is_op()) break;
      around[at] = true;
    }
  }
  for (std::size_t i = 0; i < trace.nodes.size(); ++i)
    if (trace.nodes[i].parent != i && found[trace.nodes[i].parent]) found[i] = true;
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) found[i] = found[i] || around[i];
  return found;
}

}  // namespace purlin::profile::flow
