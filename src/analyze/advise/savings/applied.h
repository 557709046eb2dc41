// SPDX-License-Identifier: Apache-2.0
// Applied: one recommended change, carried out on the recorded timeline: the replay before and
// after it, side by side. Pure functions over values.
#pragma once

#include "analyze/advise/advice.h"
#include "base/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct AppliedWork {  // of one kernel or kind of copy, in one step
  std::string name;
  double before_ns = 0, after_ns = 0, before_count = 0, after_count = 0;
};
struct GoneCalls {
  std::string name;  // op and call
  double count = 0;  // in one step
};
struct AppliedSide {  // of one step
  double step_ns = 0, busy_ns = 0, calls = 0;
  std::vector<CriticalWork> critical_path;
};
struct AppliedChange {
  Intervention intervention;
  double steps = 0;
  AppliedSide before, after;
  std::vector<AppliedWork> work;  // greatest difference first
  std::vector<GoneCalls> gone;    // calls of the host that go along, most first
  Profile timeline;               // the window after the change
};

// `which`: the id of an intervention, or its number in the list, from 1. Both profiles must be
// those of `advice`. kNotFound: no such intervention; kInvalid: it was not estimated by replay.
Result<AppliedChange> apply_intervention(const Profile& profile, const TimelineAnalysis& timeline,
                                         const std::vector<Ceilings>& measured,
                                         const Advice& advice, std::string_view which);

Json to_json(const AppliedChange& applied, const Advice& advice);  // purlin.applied/1
std::string render_applied(const AppliedChange& applied, const Terminal& terminal);

}  // namespace purlin::analyze
