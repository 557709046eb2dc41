// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/host/host_view.h"

#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

namespace purlin::analyze {

double HostView::idle(IdleCause cause) const {
  double sum = 0;
  for (const DeviceTime& device : facts.timeline->devices)
    sum += static_cast<double>(device.idle_ns[static_cast<std::size_t>(cause)]);
  return sum * share;
}

double HostView::over_devices(std::int64_t DeviceTime::*part) const {
  double sum = 0;
  for (const DeviceTime& device : facts.timeline->devices) sum += static_cast<double>(device.*part);
  return sum * share;
}

std::string HostView::part(double ns) const {
  return of_total(ns, length) + (unit.kind == "step" ? " a step" : "");
}

void HostView::add_longest(IdleCause cause, Intervention& out) const {
  for (const Gap& gap : facts.timeline->gaps) {
    if (gap.cause != cause || gap.evidence.empty()) continue;
    out.evidence.push_back(
        {"longest such gap",
         fmt::format("{}{}: {}", short_ns(static_cast<double>(gap.duration_ns)),
                     gap.after.empty() ? "" : " before " + clean(gap.after), clean(gap.evidence)),
         "timeline"});
    return;
  }
}

void HostView::add(Intervention out, Interval3 saved, double most, std::string confidence) {
  out.saved_ns = bounded(saved, most);
  out.confidence = std::move(confidence);
  advice.interventions.push_back(std::move(out));
}

}  // namespace purlin::analyze
