// SPDX-License-Identifier: Apache-2.0
// NodeTimes: the last known duration of each node of a CUDA graph. If a kind is disabled during a
// replay, CUPTI 13.0 gives that replay the right start, but the end of a later replay (H200:
// bench/results/graph_windows.md). Kernels of microseconds then have hundreds of milliseconds, in
// one to all of a window's replays. The nodes of a graph take nearly the same time in each replay,
// so an earlier duration replaces the wrong one.
//
// At most 2 × kMax nodes are known. The oldest ones are forgotten, because programs make graphs
// repeatedly. Owned by ActivityAggregator, used within the recorder's lock. Thread-safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

namespace purlin::profile::capture::cuda {

class NodeTimes {
 public:
  static constexpr std::size_t kMax = 32'768;
  static constexpr std::int64_t kSlackNs = 2000;

  void learn(std::uint32_t graph, std::uint64_t node, std::int64_t duration_ns) {
    if (known_.size() >= kMax) earlier_ = std::exchange(known_, {});
    known_[key(graph, node)] = duration_ns;
  }
  // The duration of a record with a doubtful end; -1: not known.
  std::int64_t believe(std::uint32_t graph, std::uint64_t node, std::int64_t duration_ns) const {
    for (const auto* nodes : {&known_, &earlier_})
      if (const auto known = nodes->find(key(graph, node)); known != nodes->end())
        return duration_ns <= 2 * known->second + kSlackNs ? duration_ns : known->second;
    return -1;
  }

 private:
  static std::uint64_t key(std::uint32_t graph, std::uint64_t node) {
    return node * 0x9E3779B97F4A7C15u + graph;
  }
  std::unordered_map<std::uint64_t, std::int64_t> known_, earlier_;
};

}  // namespace purlin::profile::capture::cuda
