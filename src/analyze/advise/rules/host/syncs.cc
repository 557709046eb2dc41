// SPDX-License-Identifier: Apache-2.0
// The host waits for the device, and launches the next work only then.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/host.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace purlin::analyze {
namespace {

constexpr double kSynchronised = 0.02;  // share of the unit
constexpr double kSmallCopy = 64;       // bytes
// Few programs need what they wait for several times in a step: most such waits are of logging.
constexpr double kManyWaits = 3;
constexpr Interval3 kMost = {0, 0.8, 1};

}  // namespace

void add_syncs_rule(HostView& view) {
  const double waited = view.idle(IdleCause::kSynchronization);
  const Timeline& timeline = view.facts.profile->timeline;
  if (waited < kSynchronised * view.length) return;
  std::map<std::uint32_t, double> by_name;
  edit::RemoveCalls edit;
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    const Call& call = timeline.calls[i];
    if (!waits_for_device(timeline, call)) continue;
    edit.calls.push_back(i);
    if (call.name < timeline.names.size()) by_name[call.name] += 1;
  }
  const double waits = static_cast<double>(edit.calls.size()) * view.share;
  edit.gone = view.unit.kind == "step" && waits >= kManyWaits ? kMost : kHalf;
  const Interval3 gone = edit.gone;
  std::vector<std::pair<double, std::uint32_t>> most;
  for (const auto& [name, count] : by_name) most.emplace_back(-count, name);
  std::sort(most.begin(), most.end());
  Intervention out = from_remedy("remove_syncs");
  out.evidence.push_back(
      {"device idle because the host had waited for it", view.part(waited), "timeline"});
  for (std::size_t i = 0; i < std::min<std::size_t>(3, most.size()); ++i)
    out.evidence.push_back({"calls that wait",
                            fmt::format("{} {}", clean(timeline.names[most[i].second]),
                                        counted(-most[i].first, "time")),
                            "timeline"});
  double small = 0;
  for (const Activity& activity : timeline.activities)
    if (activity.kind == ActivityKind::kCopy && activity.bytes > 0 &&
        static_cast<double>(activity.bytes) <= kSmallCopy &&
        activity.row < view.facts.profile->copies.size() &&
        copy_direction(view.facts.profile->copies[activity.row].kind) == "d2h")
      small += 1;
  if (small > 0)
    out.evidence.push_back(
        {"memcpys to the host of a few bytes, such as .item()", format_count(small), "timeline"});
  view.add_longest(IdleCause::kSynchronization, out);
  out.assumptions.emplace_back("the wait may be a real dependency, so the low estimate is 0");
  if (!edit.calls.empty()) out.change.edits.emplace_back(std::move(edit));
  view.add(std::move(out), gone * waited, waited, "C");
}

}  // namespace purlin::analyze
