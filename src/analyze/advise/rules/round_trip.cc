// SPDX-License-Identifier: Apache-2.0
// Arrays that go to the host and come back: copies of one size in both directions, again and again.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

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
    "do the host's work on the array on the device, in a kernel|"
    "PyTorch: torch ops in place of NumPy's|"
    "OpenMP, OpenACC: a data region around the loop|"
    "CUDA: one cudaMemcpy after the loop|HIP: one hipMemcpy after the loop|"
    "OpenCL: one read or map after the loop",
    "check that the host does not change the array between the copies"};

constexpr std::uint64_t kLarge = 64 * 1024;  // bytes
constexpr std::size_t kFewestTrips = 3;

struct Trips {  // copies of one size between the host and one device
  Launches out, back;
  std::size_t count() const { return std::min(out.size(), back.size()); }
};

void add_round_trips(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  const Profile& profile = *facts.profile;
  std::map<std::pair<int, std::uint64_t>, Trips> by_size;
  for (std::uint32_t i = 0; i < profile.timeline.activities.size(); ++i) {
    const Activity& activity = profile.timeline.activities[i];
    if (activity.kind != ActivityKind::kCopy || activity.row >= profile.copies.size() ||
        activity.bytes < kLarge)
      continue;
    const std::string_view way = copy_direction(profile.copies[activity.row].kind);
    Trips& trips = by_size[{activity.device, activity.bytes}];
    if (way == "d2h") trips.out.push_back(i);
    // What comes to the device before anything went is its first input.
    if (way == "h2d" && !trips.out.empty()) trips.back.push_back(i);
  }
  Launches work;
  double bytes = 0;
  for (const auto& [size, trips] : by_size) {
    if (trips.count() < kFewestTrips) continue;
    for (const Launches* copies : {&trips.out, &trips.back})
      work.insert(work.end(), copies->begin(), copies->end());
    bytes += static_cast<double>(size.second) *
             static_cast<double>(trips.out.size() + trips.back.size());
  }
  std::sort(work.begin(), work.end(), [&](std::uint32_t a, std::uint32_t b) {
    return walk.at(a).start_ns < walk.at(b).start_ns;
  });
  if (work.size() < 2 * kFewestTrips) return;
  Intervention out = from_remedy(kRoundTrip);
  remove_launches(walk, work, {0.5, 0.95, 1}, out);
  // Around the copies the device waits for the host to handle the array.
  double idle = 0;
  for (std::size_t i = 0; i + 1 < work.size(); ++i)
    if (copy_direction(profile.copies[walk.at(work[i]).row].kind) == "d2h")
      idle += static_cast<double>(
          std::max<std::int64_t>(0, begin_of(walk.at(work[i + 1])) - end_of(walk.at(work[i]))));
  out.saved_ns = out.saved_ns + Interval3{0.3, 0.9, 1} * in_one_unit(facts, idle);
  out.evidence.push_back({"copies to the host, and of as many bytes back to the device",
                          fmt::format("{}, {}", counted(static_cast<double>(work.size()), "copy"),
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
