// SPDX-License-Identifier: Apache-2.0
// Host facts: when each host thread waited for the device, when it waited for input, when the
// recording tool was at work. They give the causes of the device's idle time (idle.h). Built once
// from a sorted timeline. Memory grows with the number of such intervals, not with the calls.
// Immutable afterwards, so threads may share it.
#pragma once

#include "analyze/timeline/intervals.h"
#include "model/profile/profile.h"

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::analyze {

struct NamedInterval {
  Interval interval;
  std::uint32_t name = 0;  // index into Timeline::names: of the longest record in it
  std::int64_t longest_ns = -1;
};
using NamedIntervals = std::vector<NamedInterval>;  // ordered, disjoint

struct HostWaits {
  NamedIntervals profiler, loading, waiting;
};

// Whether the host stands still in a call until the device is done: synchronise calls, and the CUDA
// and HIP copies without "Async". Not those that only ask (cudaEventQuery), nor those that make
// the device wait (cudaStreamWaitEvent).
bool is_host_wait(CallKind kind, std::string_view call);
bool waits_for_device(const Timeline& timeline, const Call& call);
// By call: memcpys to or from pageable memory that returned when they had ended, though "Async" by
// name.
std::vector<bool> waits_for_own_copy(const Profile& profile);
// An allocation that a capture cannot hold: not one in the order of a stream.
bool allocates_outside_of_streams(const Timeline& timeline, const Call& call);
// Of unified memory: no call of the program launched it.
bool is_migration(const Profile& profile, const Activity& activity);
// By its record, or because a graph's launch launched it.
inline bool is_graph_node(const Timeline& timeline, const Activity& activity) {
  return activity.graph != 0 || (activity.call < timeline.calls.size() &&
                                 timeline.calls[activity.call].kind == CallKind::kGraphLaunch);
}

// Whether calls of the host were recorded, and not only the times of launches and the waits.
bool knows_calls(const Timeline& timeline);
// Whether waits or memcpy calls of the host were.
bool knows_waits(const Timeline& timeline);

class HostFacts {
 public:
  explicit HostFacts(const Profile& profile);
  const HostWaits& thread(std::uint32_t process, std::uint32_t thread) const;
  const HostWaits& process(std::uint32_t process) const;
  // When no process was being recorded: between recordings that were merged, in order.
  const NamedIntervals& between() const { return between_; }
  // Calls that wait for a device, nested ones once.
  double syncs() const { return syncs_; }

 private:
  std::unordered_map<std::uint64_t, HostWaits> threads_;
  std::unordered_map<std::uint32_t, HostWaits> processes_;
  void find_between(const Timeline& timeline);
  HostWaits none_;
  NamedIntervals between_;
  double syncs_ = 0;
};

}  // namespace purlin::analyze
