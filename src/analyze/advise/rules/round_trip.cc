// SPDX-License-Identifier: Apache-2.0
// An array that goes to the host and comes back: as many bytes to the device as the copy before
// brought from it.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

namespace purlin::analyze {
namespace {

constexpr Remedy kRoundTrip = {
    "keep_on_device",
    "Keep the array on the device",
    Pillar::kMemoryEfficiency,
    Level::kAlgorithm,
    "host",
    "days",
    "low",
    "api-independent",
    "application",
    "do the host's work on the array on the device: torch ops, CuPy, a kernel|"
    "OpenMP, OpenACC: a data region around the loop|"
    "CUDA: one cudaMemcpy after the loop",
    "check that the host does not change the array between the copies"};

constexpr std::uint64_t kLarge = 64 * 1024;  // bytes
constexpr std::size_t kFewestTrips = 3;

void add_round_trips(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  const Profile& profile = *facts.profile;
  Launches work;
  double bytes = 0;
  std::uint32_t last = kNone;
  for (std::uint32_t i = 0; i < profile.timeline.activities.size(); ++i) {
    const Activity& activity = profile.timeline.activities[i];
    if (activity.kind != ActivityKind::kCopy || activity.row >= profile.copies.size() ||
        activity.bytes < kLarge)
      continue;
    const std::string_view way = copy_direction(profile.copies[activity.row].kind);
    if (way == "h2d" && last != kNone && walk.at(last).bytes == activity.bytes &&
        walk.at(last).device == activity.device) {
      work.push_back(last);
      work.push_back(i);
      bytes += 2 * static_cast<double>(activity.bytes);
    }
    last = way == "d2h" ? i : kNone;
  }
  if (work.size() < 2 * kFewestTrips) return;
  Intervention out = from_remedy(kRoundTrip);
  remove_launches(walk, work, {0.5, 0.95, 1}, out);
  // Around the copies the device waits for the host to handle the array.
  double idle = 0;
  for (std::size_t i = 0; i + 1 < work.size(); i += 2)
    idle += static_cast<double>(
        std::max<std::int64_t>(0, begin_of(walk.at(work[i + 1])) - end_of(walk.at(work[i]))));
  out.saved_ns = out.saved_ns + Interval3{0.3, 0.9, 1} * in_one_unit(facts, idle);
  out.evidence.push_back(
      {"copies to the host, each followed by one of as many bytes to the device",
       fmt::format("{}, {}", counted(static_cast<double>(work.size()) / 2, "time"),
                   format_bytes(bytes)),
       "timeline"});
  out.evidence.push_back(
      {"time of these copies",
       of_total(in_one_unit(facts, walk.duration(work)), facts.unit.baseline_ns.mid), "timeline"});
  out.evidence.push_back({"device idle between the two",
                          of_total(in_one_unit(facts, idle), facts.unit.baseline_ns.mid),
                          "timeline"});
  out.assumptions.emplace_back(
      "what the host does with the array can be done on the device in little time");
  out.confidence = "B";
  advice.interventions.push_back(std::move(out));
}

}  // namespace

const Rule kRoundTripRule = {{&kRoundTrip, 1}, add_round_trips};

}  // namespace purlin::analyze
