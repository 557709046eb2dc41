// SPDX-License-Identifier: Apache-2.0
// Copies that no computation hides.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

// Over a link, which works while the device computes.
bool is_link_copy(const std::string& kind) { return is_host_copy(kind) || kind == "p2p"; }
constexpr Interval3 kOverlapped = {0.3, 0.7, 1.0};

}  // namespace

void add_copies_rule(HostView& view) {
  const double all = view.over_devices(&DeviceTime::copy_ns);
  const double hidden = view.over_devices(&DeviceTime::compute_and_copy_ns);
  const double exposed =
      view.over_devices(&DeviceTime::exposed_copy_ns) * view.part_of_copies(is_link_copy);
  if (all <= 0 || exposed < kExposedCopies * view.length || hidden >= 0.5 * all) return;
  Intervention out = from_remedy("overlap_copies");
  const bool peers = view.part_of_copies([](const std::string& kind) { return kind == "p2p"; }) > 0;
  out.evidence.push_back({peers ? "copies between devices, or to the host, that nothing hides"
                                : "copies between host and device that nothing hides",
                          view.part(exposed), "timeline"});
  out.evidence.push_back({"copies during computation",
                          fmt::format("{:.0f}% of {}", 100 * hidden / all, short_ns(all)),
                          "timeline"});
  const double compute = view.over_devices(&DeviceTime::compute_ns);
  const double most = std::min(exposed, std::max(0.0, compute - hidden));
  out.assumptions.push_back(
      fmt::format("the {} of computation without a concurrent copy can hide one; data of a step "
                  "can be copied during the previous step",
                  short_ns(compute - hidden)));
  out.change.edits.emplace_back(edit::Overlap{Affected::of_copies(view.copy_rows(is_link_copy)),
                                              kOverlapped * (most / exposed)});
  view.add(std::move(out), kOverlapped * most, most, "B");
}

}  // namespace purlin::analyze
