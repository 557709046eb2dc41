// SPDX-License-Identifier: Apache-2.0
// Slice: a profile cut to a part of its time, such as the steady state. Report, roofline and advice
// are made of it. Times are the timeline's, in ns. Pure functions over values.
#pragma once

#include "analyze/timeline/intervals.h"
#include "analyze/timeline/timeline.h"
#include "base/status.h"
#include "model/profile/profile.h"

#include <optional>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct DeviceWindow {
  int device = 0;  // index into Environment::devices
  Interval window;
};

// The work that begins inside of a window of its device, which has one or several in order. Devices
// without a window keep nothing. Rows have the durations of that work. Their other facts (counters,
// first and last time) are those of the whole run, as the host's waits are. Stall samples of
// kernels without work there are left out. Host records that touch the window or launched the work
// are in it. The profile must be sorted (sort_timeline). The result is sorted too.
Profile slice(const Profile& profile, const std::vector<DeviceWindow>& windows);

// Whether the timeline holds every launch of the rows, so that a slice of it is one of the rows.
bool has_every_launch(const Profile& profile);
// The profile's part in the windows of `analysis`; nothing where that is all of it, or where the
// timeline lacks launches.
std::optional<Profile> cut_to(const Profile& profile, const TimelineAnalysis& analysis);

// Analyses the timeline, and cuts `profile` to the chosen phase. The profile stays whole
// - for PhaseChoice::kAll;
// - where the phase holds 95 % of the kernel time and more, or 80 % where the steps are a guess;
// - where it is a guess of fewer than 10 steps;
// - where its timeline lacks launches, as of a sampled capture. The analysis says so in `limits`.
// The timeline of a plain profile is all launches of a part of the run: the rows are cut to its
// phase. kNotFound: a start-up was asked for, and no steps are known or nothing comes before them.
Result<TimelineAnalysis> select_phase(Profile& profile, PhaseChoice choice);
Result<PhaseChoice> phase_from_text(std::string_view text);  // "steady", "startup", "all"

}  // namespace purlin::analyze
