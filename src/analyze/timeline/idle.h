// SPDX-License-Identifier: Apache-2.0
// Idle time by cause. A gap is split where the cause changes, so the parts of all gaps add up to
// the idle time. The rules and their reasons: docs/concepts/timeline.md, "Idle time".
#pragma once

#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/timeline.h"

#include <array>
#include <string>

namespace purlin::analyze {

// Of one device. attribute() must be called in order of time; describe() may be called for any gap.
class IdleAttribution {
 public:
  // `process`: whose host work counts where a launch is not known.
  IdleAttribution(const Profile& profile, const HostFacts& host, std::uint32_t process);

  using Causes = std::array<std::int64_t, kIdleCauses>;
  Causes attribute(const Segment& gap);
  // Names around the gap, the cause that took most of it, and in words what shows it.
  Gap describe(const Segment& gap, const Causes& causes, int device) const;

 private:
  struct Plan {  // what is known before looking at the host
    const HostWaits* waits = nullptr;
    std::uint32_t call = kNone;  // that launched the next work
    bool queued = false;         // it had returned when the gap began
    bool blocking = false;       // it is a copy that waits
    Interval host, launch;       // before that call, and from it on
  };
  Plan plan(const Segment& gap) const;
  std::int64_t take(const NamedIntervals& from);
  std::uint32_t graph_launch_in(const Interval& gap) const;  // kNone: none began in it
  std::string name_of(std::size_t activity) const;
  std::string evidence(const Segment& gap, IdleCause cause) const;

  const Profile& profile_;
  const HostFacts& host_;
  std::uint32_t process_;
  std::vector<std::uint32_t> graph_launches_;  // calls of that process
  std::vector<IntervalCoverage> host_work_;    // ops and calls of that process
  std::vector<Interval> left_, scratch_;       // of the present gap, kept for their memory
};

}  // namespace purlin::analyze
