// SPDX-License-Identifier: Apache-2.0
// Collectives that no computation hides.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/device_time.h"
#include "base/text.h"

#include <fmt/format.h>

namespace purlin::analyze {
namespace {

// Share of the unit: that of PyTorch's TensorBoard plugin.
constexpr double kExposedCommunication = 0.10;

}  // namespace

void add_communication_rule(HostView& view) {
  const double exposed = view.over_devices(&DeviceTime::exposed_communication_ns);
  if (exposed < kExposedCommunication * view.length) return;
  const double all = view.over_devices(&DeviceTime::communication_ns);
  Intervention out = from_remedy("overlap_communication");
  out.evidence.push_back(
      {"communication that no computation hides", view.part(exposed), "timeline"});
  out.evidence.push_back(
      {"of all communication", fmt::format("{:.0f}%", 100 * exposed / all), "timeline"});
  for (const RankStats& rank : view.facts.timeline->ranks)
    if (rank.collectives > 0 && rank.last > 0.5 * rank.collectives)
      out.evidence.push_back(
          {"a device keeps the others waiting",
           fmt::format("{} is last in {} of {}",
                       clean(device_label(*view.facts.profile, rank.device, rank.rank)),
                       format_count(rank.last), counted(rank.collectives, "collective")),
           "timeline"});
  out.assumptions.emplace_back(
      "part of it is waiting for the slowest rank, which overlap does not shorten");
  std::vector<std::uint32_t> rows;
  const std::vector<bool> communicates = communication_rows(*view.facts.profile);
  for (std::uint32_t i = 0; i < communicates.size(); ++i)
    if (communicates[i]) rows.push_back(i);
  out.change.edits.emplace_back(edit::Overlap{Affected::of_rows(std::move(rows)), kHalf});
  view.add(std::move(out), kHalf * exposed, exposed, "C");
}

}  // namespace purlin::analyze
