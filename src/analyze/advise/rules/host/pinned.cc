// SPDX-License-Identifier: Apache-2.0
// Copies to the device from memory that is not pinned.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

// Of a copy from pinned memory: PCIe 3, 4 and 5 at 16 lanes, as measured with pinned memory.
constexpr Interval3 kPinned = {12e9, 24e9, 48e9}, kPinnedHopper = {24e9, 45e9, 56e9};
constexpr double kLargeCopy = 256 * 1024;

// PCIe 5 from Hopper on, 4 from Ampere on.
Interval3 pinned_bandwidth(const Facts& facts) {
  int newest = 0;
  for (const DeviceInfo& device : facts.profile->environment.devices)
    newest = std::max(newest, architecture_number(device.arch));
  return newest >= 90 ? kPinnedHopper : kPinned;
}

}  // namespace

void add_pinned_rule(HostView& view) {
  const double exposed = view.over_devices(&DeviceTime::exposed_copy_ns) * view.host_part();
  double ns = 0, bytes = 0, count = 0;
  bool recorded = true;
  const auto slow = [](const std::string& kind) {
    return copy_direction(kind) == "h2d" && copy_memory(kind) != "pinned";
  };
  for (const CopyRow& copy : view.facts.profile->copies)
    if (slow(copy.kind)) {
      recorded = recorded && copy_memory(copy.kind) == "pageable";
      ns += copy.duration.total_ns();
      bytes += copy.bytes;
      count += copy.duration.count();
    }
  if (ns <= 0 || count <= 0 || bytes / count < kLargeCopy) return;
  const double rate = bytes / ns * 1e9;
  const Interval3 pinned_rate = pinned_bandwidth(view.facts);
  if (rate >= pinned_rate.low) return;
  const auto saved = [&](double pinned) { return exposed * std::max(0.0, 1 - rate / pinned); };
  Intervention out = from_remedy("pin_memory");
  out.evidence.push_back(
      {"copies to the device",
       fmt::format("{} in {}: {}", format_bytes(bytes), short_ns(ns), si(rate, "B/s")),
       "timeline"});
  out.evidence.push_back({"part that nothing hides", view.part(exposed), "timeline"});
  if (recorded) out.evidence.push_back({"memory of the host", "pageable", "timeline"});
  out.assumptions.push_back(
      fmt::format("copies from pinned memory reach {:.0f}, {:.0f} and {:.0f} GB/s (PCIe at 16 "
                  "lanes)",
                  pinned_rate.low / 1e9, pinned_rate.mid / 1e9, pinned_rate.high / 1e9) +
      (recorded ? "" : "; the profile does not record whether the memory is pinned"));
  out.change.edits.emplace_back(
      edit::Scale{Affected::of_copies(view.copy_rows(slow)),
                  {rate / pinned_rate.low, rate / pinned_rate.mid, rate / pinned_rate.high}});
  // The host copies from pageable memory itself: its calls get shorter as well.
  edit::ScaleHost calls{{rate / pinned_rate.low, rate / pinned_rate.mid, 0.1}, {}, kNone};
  for (const Activity& activity : view.facts.profile->timeline.activities)
    if (activity.kind == ActivityKind::kCopy && activity.row < view.facts.profile->copies.size() &&
        slow(view.facts.profile->copies[activity.row].kind) &&
        activity.call < view.facts.profile->timeline.calls.size()) {
      const Call& call = view.facts.profile->timeline.calls[activity.call];
      if (calls.when.empty() || calls.when.back().end <= begin_of(call))
        calls.when.push_back({begin_of(call), end_of(call)});
    }
  if (!calls.when.empty()) out.change.edits.emplace_back(std::move(calls));
  view.add(std::move(out),
           {saved(pinned_rate.low), saved(pinned_rate.mid), saved(pinned_rate.high)}, exposed, "C");
}

}  // namespace purlin::analyze
