// SPDX-License-Identifier: Apache-2.0
// Copies from or to memory of the host that is not pinned.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/advise/rules/walk.h"
#include "analyze/text/layout.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

namespace purlin::analyze {
namespace {

// Of a copy from pinned memory: PCIe 3, 4 and 5 at 16 lanes, as measured with pinned memory.
constexpr Interval3 kPinned = {12e9, 24e9, 48e9}, kPinnedHopper = {24e9, 45e9, 56e9};
constexpr double kLargeCopy = 256 * 1024;
constexpr double kLeastPinning = 0.05;  // of the unit

// PCIe 5 from Hopper on, 4 from Ampere on.
Interval3 pinned_bandwidth(const Facts& facts) {
  int newest = 0;
  for (const DeviceInfo& device : facts.profile->environment.devices)
    newest = std::max(newest, architecture_number(device.arch));
  return newest >= 90 ? kPinnedHopper : kPinned;
}

// The copies of one direction from or to memory that is not pinned.
struct Unpinned {
  explicit Unpinned(std::string_view of) : direction(of) {}

  std::string_view direction;
  double ns = 0, bytes = 0, count = 0;
  bool recorded = true;  // that the memory is pageable

  // Downloads without a record of the memory are mostly of single values.
  bool has(const std::string& kind) const {
    return copy_direction(kind) == direction && copy_memory(kind) != "pinned" &&
           (direction == "h2d" || copy_memory(kind) == "pageable");
  }
  void add(const CopyRow& copy) {
    if (!has(copy.kind)) return;
    recorded = recorded && copy_memory(copy.kind) == "pageable";
    ns += copy.duration.total_ns();
    bytes += copy.bytes;
    count += copy.duration.count();
  }
  double rate() const { return bytes / ns * 1e9; }
  bool worthwhile(const Interval3& pinned) const {
    return ns > 0 && count > 0 && bytes / count >= kLargeCopy && rate() < pinned.low;
  }
};

// The host copies to and from pageable memory itself: from pinned memory it only asks for the copy.
constexpr double kAsking = 0.1;
edit::ScaleHost shorter_calls(const Profile& profile, const Unpinned& copies,
                              const Interval3& factor) {
  edit::ScaleHost calls{
      {factor.low, std::min(factor.mid, kAsking), std::min(factor.high, kAsking)}, {}, kNone};
  for (const Activity& activity : profile.timeline.activities) {
    if (activity.kind != ActivityKind::kCopy || activity.row >= profile.copies.size() ||
        !copies.has(profile.copies[activity.row].kind) ||
        activity.call >= profile.timeline.calls.size())
      continue;
    const Call& call = profile.timeline.calls[activity.call];
    if (calls.when.empty() || calls.when.back().end <= begin_of(call))
      calls.when.push_back({begin_of(call), end_of(call)});
  }
  return calls;
}

// It then waits for the copy, in the same op. What is sent needs no wait; what is fetched is read.
edit::RemoveCalls waits_for_copies(const Profile& profile, const Unpinned& copies) {
  const Timeline& timeline = profile.timeline;
  std::set<std::uint32_t> ops;
  for (const Activity& activity : timeline.activities)
    if (activity.kind == ActivityKind::kCopy && activity.row < profile.copies.size() &&
        copies.has(profile.copies[activity.row].kind) && activity.call < timeline.calls.size() &&
        timeline.calls[activity.call].op != kNone)
      ops.insert(timeline.calls[activity.call].op);
  edit::RemoveCalls out{{}, copies.direction == "h2d" ? Interval3{0, 1, 1} : Interval3{0, 0, 1}};
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i)
    if (timeline.calls[i].kind == CallKind::kSync && ops.contains(timeline.calls[i].op))
      out.calls.push_back(i);
  return out;
}

constexpr std::string_view kPinning[] = {"aten::pin_memory", "aten::_pin_memory"};
// Of the host's time to pin an array: it may have to copy other data into the pinned buffer.
constexpr Interval3 kPinnedOnce = {0.6, 0.1, 0};
constexpr RemedyCase kOneBuffer = {
    "Pin one buffer before the loop, not each batch", "hours",
    "PyTorch: buffer = torch.empty(..., pin_memory=True) once, then buffer.copy_(batch)|"
    "PyTorch: DataLoader(pin_memory=True) pins on another thread; two buffers take turns|"
    "CUDA: cudaMallocHost once, not in each step",
    "the buffer must not change before its copy has ended: record an event"};

}  // namespace

// Memory that is pinned in each step, on a thread that also launches.
void add_pinning_rule(HostView& view) {
  const Timeline& timeline = view.facts.profile->timeline;
  std::set<std::pair<std::uint32_t, std::uint32_t>> launching;
  for (const Call& call : timeline.calls)
    if (call.kind == CallKind::kLaunch || call.kind == CallKind::kGraphLaunch)
      launching.insert({call.process, call.thread});
  edit::ScaleHost edit{kPinnedOnce, {}, kNone};
  double ns = 0, count = 0;
  for (const Op& op : timeline.ops) {
    const std::string_view name = name_in(timeline, op.name);
    if (std::find(std::begin(kPinning), std::end(kPinning), name) == std::end(kPinning) ||
        !launching.contains({op.process, op.thread}))
      continue;
    if (!edit.when.empty() && begin_of(op) < edit.when.back().end) continue;
    edit.when.push_back(interval_of(op));
    ns += static_cast<double>(interval_of(op).length());
    count += 1;
  }
  ns *= view.share;
  if (view.unit.kind != "step" || count * view.share < 1 || ns < kLeastPinning * view.length)
    return;
  Intervention out = from_remedy("pin_memory", kOneBuffer);
  out.evidence.push_back(
      {"the host pins memory in each step",
       fmt::format("{} a step, {}", counted(count * view.share, "time"), view.part(ns)),
       "timeline"});
  out.assumptions.emplace_back(
      "the host then copies into the pinned buffer at most; the low estimate keeps 0.6 of the "
      "time");
  out.change.edits.emplace_back(std::move(edit));
  view.stalled_ns = std::min(view.unit.host_ns, view.stalled_ns + ns);
  view.add(std::move(out),
           Interval3{1 - kPinnedOnce.low, 1 - kPinnedOnce.mid, 1 - kPinnedOnce.high} * ns, ns, "B");
}

void add_pinned_rule(HostView& view) {
  const Profile& profile = *view.facts.profile;
  const Interval3 pinned = pinned_bandwidth(view.facts);
  Intervention out = from_remedy("pin_memory");
  Interval3 saved;
  double exposed = 0;
  bool recorded = true;
  for (Unpinned copies : {Unpinned("h2d"), Unpinned("d2h")}) {
    for (const CopyRow& copy : profile.copies) copies.add(copy);
    if (!copies.worthwhile(pinned)) continue;
    const auto fits = [&](const std::string& kind) { return copies.has(kind); };
    const double rate = copies.rate();
    const Interval3 factor = {rate / pinned.low, rate / pinned.mid, rate / pinned.high};
    const double part = view.over_devices(&DeviceTime::exposed_copy_ns) * view.part_of_copies(fits);
    exposed += part;
    saved = saved + Interval3{1 - factor.low, 1 - factor.mid, 1 - factor.high} * part;
    recorded = recorded && copies.recorded;
    out.evidence.push_back(
        {copies.direction == "h2d" ? "copies to the device" : "copies to the host",
         fmt::format("{} in {}: {}", format_bytes(copies.bytes), short_ns(copies.ns),
                     si(rate, "B/s")),
         "timeline"});
    out.change.edits.emplace_back(edit::Scale{Affected::of_copies(view.copy_rows(fits)), factor});
    edit::ScaleHost calls = shorter_calls(profile, copies, factor);
    if (!calls.when.empty()) out.change.edits.emplace_back(std::move(calls));
    edit::RemoveCalls waits = waits_for_copies(profile, copies);
    if (!waits.calls.empty()) out.change.edits.emplace_back(std::move(waits));
  }
  if (out.evidence.empty()) return;
  out.evidence.push_back({"part that nothing hides", view.part(exposed), "timeline"});
  if (recorded) out.evidence.push_back({"memory of the host", "pageable", "timeline"});
  out.assumptions.push_back(
      fmt::format("copies from pinned memory reach {:.0f}, {:.0f} and {:.0f} GB/s (PCIe at 16 "
                  "lanes)",
                  pinned.low / 1e9, pinned.mid / 1e9, pinned.high / 1e9) +
      (recorded ? "" : "; the profile does not record whether the memory is pinned"));
  view.add(std::move(out), saved, exposed, "C");
}

}  // namespace purlin::analyze
