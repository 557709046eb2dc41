// SPDX-License-Identifier: Apache-2.0
// HostView: what the rules about the host and the schedule share: parts of the timeline in one
// unit, and the time that an earlier rule of them has taken. Each rule is one file here; they run
// in the order of host_rules.cc, for what one takes the next leaves alone. The facts must outlive
// the view.
#pragma once

#include "analyze/advise/facts.h"
#include "model/profile/copy_kind.h"

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::analyze {

// Shares of the unit below which a cause is not worth a rule.
inline constexpr double kLaunchBound = 0.05, kExposedCopies = 0.05;
inline constexpr Interval3 kHalf = {0, 0.5, 1};

struct HostView {
  HostView(const Facts& of, Advice& to)
      : facts(of),
        advice(to),
        unit(of.unit),
        share(1 / (unit.count * unit.devices)),
        length(unit.recorded_ns - unit.profiler_ns) {}

  const Facts& facts;
  Advice& advice;
  const Unit& unit;
  double share, length;   // of a sum over the profile -> one unit; the unit, ns
  double stalled_ns = 0;  // of unit.host_ns: what earlier rules have taken
  double graphed_ns = 0;  // of it: what CUDA graphs would save
  std::string hindrance;  // of a sequence that would be worth a graph

  double idle(IdleCause cause) const;
  double over_devices(std::int64_t DeviceTime::*part) const;
  std::string part(double ns) const;  // "1.35 ms of 1.70 ms (80%) a step"
  void add_longest(IdleCause cause, Intervention& out) const;
  void add(Intervention out, Interval3 saved, double most, std::string confidence);

  // The share of memcpy and memset time that some kinds take.
  template <class Fits>
  double part_of_copies(const Fits& fits) const {
    double all = 0, some = 0;
    for (const CopyRow& copy : facts.profile->copies) {
      all += copy.duration.total_ns();
      if (fits(copy.kind)) some += copy.duration.total_ns();
    }
    return all > 0 ? some / all : 0;
  }
  double host_part() const { return part_of_copies(is_host_copy); }
  template <class Fits>
  std::vector<std::uint32_t> copy_rows(const Fits& fits) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < facts.profile->copies.size(); ++i)
      if (fits(facts.profile->copies[i].kind)) out.push_back(i);
    return out;
  }
};

void add_input_rule(HostView& view);
void add_made_on_host_rule(HostView& view);
void add_stalls_rule(HostView& view);
void add_slow_op_rule(HostView& view);
void add_graphs_rule(HostView& view);
void add_host_work_rule(HostView& view);
void add_syncs_rule(HostView& view);
void add_between_steps_rule(HostView& view);
void add_mapped_rule(HostView& view);
void add_copies_rule(HostView& view);
void add_fills_rule(HostView& view);
void add_pinned_rule(HostView& view);
void add_pinning_rule(HostView& view);
void add_communication_rule(HostView& view);

}  // namespace purlin::analyze
