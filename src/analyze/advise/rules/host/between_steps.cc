// SPDX-License-Identifier: Apache-2.0
// Without the host's calls: the device idles between two steps and hardly within one. So the host
// launches a step fast, and between steps it waits for the device, or works.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/median.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr double kLongBorder = 0.1;     // of the unit
constexpr double kMostOfTheIdle = 0.6;  // of the idle time
constexpr std::size_t kFewBorders = 5;

// Idle time of the first device before the first work of a step: the median.
double idle_before_a_step(const Facts& facts) {
  const std::vector<StepTime>& steps = facts.timeline->steps;
  std::vector<double> gaps;
  std::int64_t until = 0;
  std::size_t next = 0;
  for (const Activity& activity : facts.profile->timeline.activities) {
    if (activity.device != 0) continue;
    bool first = false;
    for (; next < steps.size() && begin_of(steps[next]) <= begin_of(activity); ++next)
      first = until > 0;
    if (first)
      gaps.push_back(static_cast<double>(std::max<std::int64_t>(0, begin_of(activity) - until)));
    until = std::max(until, end_of(activity));
  }
  if (gaps.size() < kFewBorders) return 0;
  return median_of(std::move(gaps));
}

}  // namespace

void add_between_steps_rule(HostView& view) {
  if (view.unit.kind != "step" || view.facts.exposure.known) return;
  const auto& known = view.advice.interventions;
  if (std::any_of(known.begin(), known.end(),
                  [](const Intervention& one) { return one.id == "remove_syncs"; }))
    return;
  const double border = std::min(idle_before_a_step(view.facts), view.length - view.unit.busy_ns);
  const double idle = view.length - view.unit.busy_ns;
  if (border < kLongBorder * view.length || border < kMostOfTheIdle * idle) return;
  Intervention out = from_remedy("remove_syncs");
  out.evidence.push_back({"device idle between the last work of a step and the first of the next",
                          view.part(border), "timeline"});
  out.evidence.push_back(
      {"idle within a step", view.part(std::max(0.0, idle - border)), "timeline"});
  out.how.emplace_back(
      "record the host's waits, which show what it does there: purlin profile --waits --full");
  out.assumptions.emplace_back(
      "the host's calls were not recorded: it may wait for each step's result, or prepare the next "
      "step. Half of the time goes if it does so while the device works");
  view.add(std::move(out), kHalf * border, border, "D");
}

}  // namespace purlin::analyze
