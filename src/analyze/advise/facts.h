// SPDX-License-Identifier: Apache-2.0
// Facts: what the rules and the later stages of the advice know of one profile: its report by
// problem shape, its unit, what of each kernel's time counts end to end, the platform, the replay.
// gather() computes them once; the profile and its timeline must outlive them. Nothing changes them
// afterwards, so any thread may read them. What the profile does not show is empty or 0.
#pragma once

#include "analyze/advise/advice.h"
#include "analyze/advise/platform.h"
#include "analyze/advise/savings/exposure.h"
#include "analyze/replay/replayer.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace purlin::analyze {

struct Facts {
  const Profile* profile = nullptr;
  const TimelineAnalysis* timeline = nullptr;
  Report rows;                      // by kernel and problem shape
  std::vector<std::size_t> row_of;  // of each profile row, index into rows.kernels
  // Of each report row: what part of its time sets the pace, as recorded, and without the
  // recorder's work on the host: that host was faster, and the device waited less for it.
  std::vector<Interval3> exposed;
  Exposure exposure;
  Platform platform;
  Unit unit;
  TargetFractions targets;
  std::shared_ptr<const Replayer> replayer;  // nullptr: the host's calls are not known

  // Time of a row, or part of a profile's total, in one unit.
  double in_unit(double total_ns) const { return total_ns * unit.kernel_scale; }
  // A saving of a row's time, end to end: only what is exposed counts, all of it at best.
  Interval3 end_to_end(std::size_t row, Interval3 saved_total_ns) const;
  const Ceilings* ceilings_of(const KernelStat& kernel) const;
  Interval3 without_recorder(double exposed_share) const;
  // What kernels can save at most, all together, in one unit: what the host waits for the device.
  // Without the recorder it would wait longer, by what that cost.
  Interval3 max_by_kernels;
  Interval3 capped(Interval3 saved) const;
  // Rows of the profile that are in each of the report.
  std::vector<std::vector<std::uint32_t>> profile_rows;
  // Peak of the memory, B/s: 0 where unknown.
  double bandwidth_of(const KernelStat& kernel) const;
};
Facts gather(const Profile& profile, const TimelineAnalysis& timeline,
             const std::vector<Ceilings>& measured, const TargetFractions& targets);

// Words that rules and stages share.
// Whether most of the device's idle time lies between launches that were queued.
bool idles_between_queued(const Facts& facts);
inline constexpr const char* kBetweenQueued =
    "most of it between launches that are queued: fewer launches with more work each";
std::string of_total(double part_ns, double whole_ns);  // "4.21 ms of 6.78 ms (62%)"
std::string problem_text(const KernelStat& kernel);     // "nvjet … [bf16 M=1,N=1024]"
std::string short_label(const KernelStat& kernel);

}  // namespace purlin::analyze
