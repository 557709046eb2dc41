// SPDX-License-Identifier: Apache-2.0
// Few long gaps, each with its own cause.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

// A gap that counts as a separate stall: share of the idle time for the host, and ns.
constexpr double kStallShare = 0.2, kLongStall = 1e6, kFewSteps = 5;

}  // namespace

// A few long gaps are no matter of launching: each has its own cause, named in its evidence.
void add_stalls_rule(HostView& view) {
  if (view.unit.kind == "step" && view.unit.count < kFewSteps) return;
  const double least = std::max(kLongStall, kStallShare * view.unit.host_ns / view.share);
  Intervention out = from_remedy("remove_stalls");
  double count = 0, stalled = 0;
  for (const Gap& gap : view.facts.timeline->gaps) {
    const auto ns = static_cast<double>(gap.duration_ns);
    // One-off gaps are not in the unit's time, so the end of such a gap saves nothing of it.
    if (gap.one_off || gap.cause != IdleCause::kHostLaunch || ns < least || gap.evidence.empty())
      continue;
    ++count;
    stalled += ns * view.share;
    out.evidence.push_back(
        {"the device idles once for",
         fmt::format("{}{}: {}", short_ns(ns),
                     gap.after.empty() ? "" : " before " + clean(gap.after), clean(gap.evidence)),
         "timeline"});
  }
  if (count == 0 || stalled < kLaunchBound * view.length) return;
  view.stalled_ns = std::min(stalled, view.unit.host_ns);
  out.assumptions.emplace_back(
      "the host's work there may be needed once, so the low estimate is 0");
  view.add(std::move(out), kHalf * view.stalled_ns, view.stalled_ns, "B");
}

}  // namespace purlin::analyze
