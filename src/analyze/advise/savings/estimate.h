// SPDX-License-Identifier: Apache-2.0
// Estimates: intervals, the unit they are of, and the models behind them. One scenario runs through
// all three ends of an interval: low is what is left if every doubtful figure goes against the
// intervention. Pure functions. docs/guide/advise.md, "Where the intervals come from".
#pragma once

#include "analyze/replay/scenario.h"
#include "analyze/roofline/roofline.h"
#include "analyze/timeline/timeline.h"
#include "model/profile/profile.h"

#include <string>

namespace purlin::analyze {

// What GPA's advisor achieved of what it predicted, over 26 published pairs: p10, median, p90.
inline constexpr Interval3 kStallModel = {0.3, 0.85, 1.4};

// What a recorder adds to each host call and op it records, ns: for estimates without a replay.
// Kineto: 1.1 us a launch for activities alone, up to 4.5 with API records (H200); its ops with
// shapes 0.5 to 2 us.
struct RecorderOverhead {
  Interval3 call, op;  // low cost first
};
RecorderOverhead recorder_overhead(const std::string& source);

// What savings are of: a step where the timeline has steps, else the recording, else the kernels'
// time alone.
struct Unit {
  std::string kind;         // "step", "run", "kernel_time"
  double count = 1;         // number in the profile
  double devices = 1;       // the figures are their mean
  double long_steps = 0;    // of count: too long for the replay, which leaves them out
  double mean_step_ns = 0;  // a step from its begin to its end, TimelineAnalysis::mean_step

  double recorded_ns = 0;  // one unit, as recorded
  double profiler_ns = 0;  // of that: idle while the recording tool worked
  double host_ns = 0;      // of that: idle because the host launched late
  double busy_ns = 0;      // of that: the device works
  // What the recorder's work on each call and op may have added to host_ns.
  Interval3 recorder_ns;
  double kernel_scale = 1;  // of a total over the profile's kernels -> of one unit
  // The unit without the recorder, when the saving is the low, the middle, the high one.
  Interval3 baseline_ns;
};
Unit unit_of(const Profile& profile, const TimelineAnalysis& timeline);

// Share of its time that a row at its roof would save were one resource `factor` times as much.
double saved_by_more(const Roof& roof, double compute_factor, double memory_factor);

}  // namespace purlin::analyze
