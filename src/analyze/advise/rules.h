// SPDX-License-Identifier: Apache-2.0
// Rules: each looks at the facts of one profile and adds interventions, with their evidence, or
// says why one that suggests itself is not made. A rule that lacks evidence adds nothing. Facts are
// gathered once (advise/facts.cc) and must outlive the rules. One file per group of rules.
#pragma once

#include "analyze/advise/advice.h"
#include "analyze/advise/exposure.h"
#include "analyze/advise/platform.h"
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

void add_host_rules(const Facts& facts, Advice& advice);
void add_playbook(const Facts& facts, Advice& advice);  // rules/playbook.h
void add_kernel_rules(const Facts& facts, Advice& advice);
void add_stall_rules(const Facts& facts, Advice& advice);
void add_savings(const Facts& facts, std::vector<Intervention>& interventions);
// What is smaller than the difference between steps; returns how many.
std::size_t drop_below_spread(const Facts& facts, std::vector<Intervention>& interventions);
LevelShares measure_levels(const Facts& facts, const Advice& advice);
void add_plan(const Facts& facts, Advice& advice);
void add_hardware(const Facts& facts, const AdviceOptions& options, Advice& advice);
std::vector<CriticalWork> name_critical_path(const Facts& facts, const Replayed& replayed);
void add_replay(const Facts& facts, Advice& advice);
void add_no_gain(const Facts& facts, Advice& advice);
// After the interventions are listed: those that speak of a kernel spare it an entry.
void add_unknown_roofs(const Facts& facts, Advice& advice);
bool has_hardware_counters(const KernelStat& kernel);  // Kineto's figures are estimates
void judge_level(const Facts& facts, Advice& advice);
void add_lists(const Facts& facts, const AdviceOptions& options, Advice& advice);
void add_checklist(const Facts& facts, Advice& advice);
void add_alerts(const Facts& facts, Advice& advice);
// What a saving is worth for its work: days must save twice as much as hours, weeks four times. The
// alternative to another change comes after what saves other time.
double worth(const Intervention& one);
// Most worth first; what is worth as much, within a hundredth, by level.
void rank(std::vector<Intervention>& interventions);
// Reorders what rank() gave from the second place on: of a saving that the first ones take as well,
// a quarter counts. Without replay, nothing changes.
void rank_by_what_is_left(const Facts& facts, std::vector<Intervention>& interventions);
// Orders the trades, and gives each change its place: a trade stands before an intervention that is
// worth less than a quarter of it. What only takes time, for memory, is last.
void place_trades(Advice& advice);
// Alike interventions for problems of the same kernels become one.
void join_alike(std::vector<Intervention>& interventions);

// Words that the rules share.
// Whether most of the device's idle time lies between launches that were queued.
bool idles_between_queued(const Facts& facts);
inline constexpr const char* kBetweenQueued =
    "most of it between launches that are queued: fewer launches with more work each";
std::string of_total(double part_ns, double whole_ns);  // "4.21 ms of 6.78 ms (62%)"
std::string problem_text(const KernelStat& kernel);     // "nvjet … [bf16 M=1,N=1024]"
std::string short_label(const KernelStat& kernel);

}  // namespace purlin::analyze
