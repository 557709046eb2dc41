// SPDX-License-Identifier: Apache-2.0
// Change: what an intervention does to the recorded timeline, as data. A rule states it; replay
// (replay/replayer.h) computes the time it saves. Indices are those of the profile that the rule
// reads (Facts::profile): of Timeline::activities and ::calls, or of rows, which mean every
// activity of the row. Every amount has three scenarios, in order of the *saving*: low is the least
// saving, so a factor's low is its largest value.
//
// Name everything that the change touches, in all steps: replay looks at a window of them.
// Example, GEMMs of row 3 at 0.5 to 0.9 of their time, without 12 casts:
//   Change change;
//   change.edits.push_back(edit::Scale{Affected::of_row(3), {0.9, 0.7, 0.5}});
//   change.edits.push_back(edit::Remove{Affected::of(casts)});
// A plain value.
#pragma once

#include "analyze/replay/scenario.h"
#include "analyze/timeline/intervals.h"

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace purlin::analyze {

struct Affected {  // of a device; what any of the lists names
  std::vector<std::uint32_t> activities;
  std::vector<std::uint32_t> kernel_rows;  // of Profile::kernels
  std::vector<std::uint32_t> copy_rows;    // of Profile::copies
  bool empty() const { return activities.empty() && kernel_rows.empty() && copy_rows.empty(); }

  static Affected of(std::vector<std::uint32_t> activities) {
    return {std::move(activities), {}, {}};
  }
  static Affected of_row(std::uint32_t row) { return {{}, {row}, {}}; }
  static Affected of_rows(std::vector<std::uint32_t> rows) { return {{}, std::move(rows), {}}; }
  static Affected of_copies(std::vector<std::uint32_t> rows) { return {{}, {}, std::move(rows)}; }
};
using WorkGroup = std::vector<std::uint32_t>;  // activities of one round, in order

namespace edit {

// The work, the calls that launched it, and the host's time before those calls. `gone` is the share
// of all three that goes in each scenario.
struct Remove {
  Affected work;
  Interval3 gone = {1, 1, 1};
};

// Durations times the factor. The host's part stays. `least` is the factor at the work's roof: no
// doubt about the replay goes beyond it.
struct Scale {
  Affected work;
  Interval3 factor;
  double least = 0;
};

// Each group becomes one launch of `duration_ns`, in place of its first activity. The launches of
// the others go, with the host's time before them.
struct Replace {
  std::vector<WorkGroup> groups;
  Interval3 duration_ns;
};

// The host no longer makes these calls: waits, allocations, queries. What they waited for, it does
// not wait for any more. `gone` is the share of the calls that goes.
struct RemoveCalls {
  std::vector<std::uint32_t> calls;
  Interval3 gone = {1, 1, 1};
};

// Each group becomes one launch of a graph. Its nodes follow one another after `node_gap_ns`; the
// host spends `launch_ns` on it instead of the launches and of the time between them.
struct LaunchAsGraph {
  std::vector<WorkGroup> groups;
  Interval3 node_gap_ns = {1'000, 500, 300};
  Interval3 launch_ns = {20'000, 10'000, 5'000};
};

// Copies, collectives or kernels that no longer hold up their stream: the share `hidden` of each
// runs next to other work, one behind the other, and its result is needed one step later. What
// it runs next to takes `slowdown` times as long, for the time that both run.
struct Overlap {
  Affected work;
  Interval3 hidden;
  Interval3 slowdown = {1.2, 1.05, 1};
};

// The host's own time, in calls and between them, times the factor: in these intervals of time, or
// everywhere where none is given. The time in which it waits for a device is not scaled.
struct ScaleHost {
  Interval3 factor;
  std::vector<Interval> when;          // in order, disjoint
  std::uint32_t process = 0xFFFFFFFF;  // kNone: of all processes
};

}  // namespace edit

using Edit = std::variant<edit::Remove, edit::Scale, edit::Replace, edit::RemoveCalls,
                          edit::LaunchAsGraph, edit::Overlap, edit::ScaleHost>;

struct Change {
  std::vector<Edit> edits;  // applied in order
  bool empty() const { return edits.empty(); }
};
// All that the change touches takes no time at all: what it saves is the most that any can.
Change at_its_limit(Change change);

}  // namespace purlin::analyze
