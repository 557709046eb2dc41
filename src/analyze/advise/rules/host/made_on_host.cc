// SPDX-License-Identifier: Apache-2.0
// The host makes or prepares an array in each step, and the device waits for it.
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/made.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/host.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

constexpr double kMostlyDrawn = 0.5;              // of the work: ops that draw numbers
constexpr double kManyValues = 3;                 // small arrays in a step
constexpr std::uint64_t kSmallArray = 64 * 1024;  // bytes; larger ones: rules/round_trip.cc
constexpr double kLeastSent = 0.05;               // of the unit
// Of the host's time for the array, what goes: the device takes some for its own part.
constexpr Interval3 kMadeOnDevice = {0.6, 0.9, 1};
// Where it is not known what the host does, it may need what only the host has.
constexpr Interval3 kPerhapsOnDevice = {0.4, 0.9, 1};
// The work stays, on other threads: what add_input_rule has, from five cases.
constexpr Interval3 kAhead = {0.3, 0.75, 1};

// Arrays that are sent in a row can be gathered in pinned memory and sent at once. The
// host copies them at such a rate, B/s, and the link is PCIe 4 with 16 lanes.
constexpr std::size_t kManyInARow = 8;
constexpr Interval3 kGathered = {3e9, 8e9, 20e9};
constexpr double kLink = 24e9;
constexpr RemedyCase kSendAtOnce = {
    "Send the arrays in one copy", "hours",
    "PyTorch: torch.stack(arrays, out=buffer) into a pinned buffer, then one "
    "buffer.to(device, non_blocking=True)|"
    "CUDA: gather them in pinned memory, then one cudaMemcpyAsync|"
    "HIP: gather them in pinned memory, then one hipMemcpyAsync|OpenCL: one write",
    "the pinned buffer must not change before its copy has ended"};

Interval3 what_stays(Interval3 gone) { return {1 - gone.low, 1 - gone.mid, 1 - gone.high}; }

struct MadeSum {
  std::vector<std::uint32_t> copies;
  std::vector<Interval> when;
  double ns = 0;
};
// `whole`: with the work before the first op for the array.
MadeSum made_sum(const std::vector<Made>& made, bool whole, bool sending) {
  MadeSum out;
  for (const Made& one : made) {
    Interval when{whole ? one.work.begin : one.sent.begin, sending ? one.sent.end : one.work.end};
    if (!out.when.empty()) when.begin = std::max(when.begin, out.when.back().end);
    out.copies.push_back(one.copy);
    if (when.length() <= 0) continue;
    out.when.push_back(when);
    out.ns += static_cast<double>(when.length());
  }
  return out;
}

// The host stands still until an array from memory that is not pinned has left it.
std::vector<std::uint32_t> waits_within(const Timeline& timeline,
                                        const std::vector<Interval>& when) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    const std::int64_t at = begin_of(timeline.calls[i]);
    const auto next = std::partition_point(when.begin(), when.end(),
                                           [at](const Interval& one) { return one.end <= at; });
    if (next != when.end() && next->begin <= at && waits_for_device(timeline, timeline.calls[i]))
      out.push_back(i);
  }
  return out;
}

void add_keep(HostView& view, const MadeSum& sum, Interval3 gone, Evidence evidence,
              bool alternative) {
  Intervention out = keep_what_is_made();
  out.evidence.push_back(std::move(evidence));
  out.evidence.push_back(
      {"copies of these arrays to the device",
       fmt::format("{}{}", counted(static_cast<double>(sum.copies.size()) * view.share, "copy"),
                   a_unit(view.facts)),
       "timeline"});
  out.assumptions.emplace_back(
      alternative ? "the array can be made from what the device holds, or once before the steps: "
                    "else prepare it ahead"
                  : "the array can be made on the device, or once before the steps");
  out.alternative = alternative;
  edit::RemoveCalls waits{waits_within(view.facts.profile->timeline, sum.when), gone};
  if (!waits.calls.empty()) out.change.edits.emplace_back(std::move(waits));
  out.change.edits.emplace_back(edit::ScaleHost{what_stays(gone), sum.when, kNone});
  out.change.edits.emplace_back(edit::Remove{Affected::of(sum.copies), gone});
  view.add(std::move(out), gone * (sum.ns * view.share), sum.ns * view.share,
           alternative ? "D" : "C");
}

// Arrays of which one follows the other with no launch of their process in between.
std::vector<std::vector<Made>> in_a_row(const Timeline& timeline, const std::vector<Made>& made) {
  std::map<std::uint32_t, std::vector<std::int64_t>> launches;  // of a process, sorted
  for (const Call& call : timeline.calls)
    if (call.kind == CallKind::kLaunch || call.kind == CallKind::kGraphLaunch)
      launches[call.process].push_back(begin_of(call));
  for (auto& [process, begins] : launches) std::sort(begins.begin(), begins.end());
  std::vector<std::vector<Made>> out;
  for (const Made& one : made) {
    bool follows = !out.empty() && out.back().back().process == one.process;
    if (follows) {
      const auto& begins = launches[one.process];
      const auto next = std::lower_bound(begins.begin(), begins.end(), out.back().back().sent.end);
      follows = next == begins.end() || *next >= one.sent.end;
    }
    if (!follows) out.emplace_back();
    out.back().push_back(one);
  }
  return out;
}

// Takes long rows of arrays out of `small`.
std::vector<Made> take_rows(const Timeline& timeline, std::vector<Made>& small, double& rows) {
  std::vector<Made> taken, left;
  for (std::vector<Made>& row : in_a_row(timeline, small)) {
    const bool many = row.size() >= kManyInARow;
    rows += many ? 1 : 0;
    std::vector<Made>& to = many ? taken : left;
    to.insert(to.end(), row.begin(), row.end());
  }
  small = std::move(left);
  return taken;
}

void add_rows(HostView& view, const std::vector<Made>& made, double rows) {
  const MadeSum sum = made_sum(made, false, true);
  if (sum.ns * view.share < kLeastSent * view.length) return;
  double bytes = 0;
  for (const Made& one : made)
    bytes += static_cast<double>(view.facts.profile->timeline.activities[one.copy].bytes);
  const auto count = static_cast<double>(made.size());
  const auto gone = [&](double gather) {
    const double stays = rows / count + bytes * (1 / gather + 1 / kLink) * 1e9 / sum.ns;
    return std::clamp(1 - stays, 0.0, 1.0);
  };
  const Interval3 saved = {gone(kGathered.low), gone(kGathered.mid), gone(kGathered.high)};
  Intervention out = from_remedy("cut_host_work", kSendAtOnce);
  out.evidence.push_back({"copies to the device with no launch in between",
                          fmt::format("{}{}, {}", counted(count * view.share, "copy"),
                                      a_unit(view.facts), format_bytes(bytes * view.share)),
                          "timeline"});
  out.evidence.push_back({"host's time for them", view.part(sum.ns * view.share), "timeline"});
  out.assumptions.push_back(
      fmt::format("the host gathers them at {:.0f} GB/s, {:.0f} to {:.0f}, in pinned memory",
                  kGathered.mid / 1e9, kGathered.low / 1e9, kGathered.high / 1e9));
  edit::RemoveCalls waits{waits_within(view.facts.profile->timeline, sum.when), saved};
  if (!waits.calls.empty()) out.change.edits.emplace_back(std::move(waits));
  out.change.edits.emplace_back(edit::ScaleHost{what_stays(saved), sum.when, kNone});
  out.change.edits.emplace_back(edit::Remove{Affected::of(sum.copies), saved});
  view.add(std::move(out), saved * (sum.ns * view.share), sum.ns * view.share, "C");
}

void add_values(HostView& view, const std::vector<Made>& made) {
  std::vector<Made> small;
  for (const Made& one : made)
    if (view.facts.profile->timeline.activities[one.copy].bytes < kSmallArray) small.push_back(one);
  double rows = 0;
  const std::vector<Made> taken = take_rows(view.facts.profile->timeline, small, rows);
  if (!taken.empty()) add_rows(view, taken, rows);
  if (static_cast<double>(small.size()) * view.share < kManyValues) return;
  const MadeSum sum = made_sum(small, false, true);
  const double ns = sum.ns * view.share;
  if (ns < kLeastSent * view.length) return;
  add_keep(
      view, sum, kMadeOnDevice,
      {"host's time to make small tensors and to send each of them", view.part(ns), "timeline"},
      false);
}

}  // namespace

void add_made_on_host_rule(HostView& view) {
  const std::vector<Made> made = made_by_host(view.facts);
  const std::vector<Made> work = long_work(view.facts, made);
  if (work.empty()) return add_values(view, made);
  double drawn = 0;
  for (const Made& one : work) drawn += one.random_ns;
  const MadeSum ahead = made_sum(work, true, false), whole = made_sum(work, true, true);
  const double ns = ahead.ns * view.share;
  const bool random = drawn >= kMostlyDrawn * ahead.ns;
  const Evidence evidence = {random ? "host's time to draw the numbers that it then sends"
                                    : "host's time before it sends an array, without a launch",
                             view.part(ns), "timeline"};
  if (!random) {
    Intervention out = from_remedy("feed_the_device");
    out.evidence.push_back(evidence);
    out.assumptions.emplace_back(
        "the time before the copy prepares what is sent; the host has spare cores");
    out.change.edits.emplace_back(edit::ScaleHost{what_stays(kAhead), ahead.when, kNone});
    view.add(std::move(out), kAhead * ns, ns, "C");
  }
  add_keep(view, whole, random ? kMadeOnDevice : kPerhapsOnDevice, evidence, !random);
  view.stalled_ns = std::min(view.unit.host_ns, view.stalled_ns + ns);
}

}  // namespace purlin::analyze
