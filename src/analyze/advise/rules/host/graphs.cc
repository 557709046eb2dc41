// SPDX-License-Identifier: Apache-2.0
// A repeated launch sequence that the host launches too slowly: as a CUDA graph.
#include "analyze/advise/rules/graph_capture.h"
#include "analyze/advise/rules/host/host_view.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace purlin::analyze {
namespace {

// Between two nodes of a graph, and to launch one (H200: 0.4 us and 5 to 10 us); the least first.
constexpr double kLongBetween = 50'000;  // ns: a graph of longer launches gains little
constexpr int kFewestBetween = 8;  // launches between two copies to the host, that a graph is worth
constexpr Interval3 kNodeGap = {300, 500, 1'000}, kGraphLaunch = {5'000, 10'000, 20'000};

// The ranks of one program run one sequence on many devices. One graph in its code serves all.
struct AlikeSequences {
  RepeatedSequence all;  // sums over the devices
  std::set<int> devices;
  std::vector<const RepeatedSequence*> each;
};
std::vector<AlikeSequences> sequences_by_kernels(const HostView& view) {
  std::vector<AlikeSequences> out;
  for (const RepeatedSequence& sequence : view.facts.timeline->sequences) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const AlikeSequences& known) {
      return known.all.length == sequence.length && known.all.kernels == sequence.kernels &&
             !known.devices.contains(sequence.device);
    });
    if (same == out.end()) {
      out.push_back({sequence, {sequence.device}, {&sequence}});
      continue;
    }
    same->devices.insert(sequence.device);
    same->each.push_back(&sequence);
    same->all.repeats += sequence.repeats;
    same->all.total_ns += sequence.total_ns;
    same->all.busy_ns += sequence.busy_ns;
    if (same->all.hindrance.empty()) same->all.hindrance = sequence.hindrance;
  }
  return out;
}

// Adds what the graphs hold; returns the obstacle, "" without one. Nothing is added where a graph
// would hold one launch, or collectives only.
std::string captures(const HostView& view, const AlikeSequences& alike, edit::LaunchAsGraph& edit) {
  const RepeatedSequence& all = alike.all;
  const double each = static_cast<double>(all.busy_ns) / std::max(1, all.length * all.repeats);
  if (!all.hindrance.empty() && (all.between_copies < kFewestBetween || each > kLongBetween))
    return all.hindrance;
  for (const RepeatedSequence* sequence : alike.each) {
    GraphCapture found = find_capture(view.facts, *sequence);
    if (!found.hindrance.empty()) return found.hindrance;
    if (!found.worth_it) continue;
    for (WorkGroup& group : found.groups) edit.groups.push_back(std::move(group));
  }
  edit.node_gap_ns = {kNodeGap.high, kNodeGap.mid, kNodeGap.low};
  edit.launch_ns = {kGraphLaunch.high, kGraphLaunch.mid, kGraphLaunch.low};
  return "";
}

std::vector<std::string> distinct(const std::vector<std::string>& names, double& left) {
  constexpr std::size_t kShown = 6;
  std::vector<std::string> out;
  for (const std::string& name : names) {
    if (std::find(out.begin(), out.end(), name) != out.end()) continue;
    if (out.size() == kShown) {
      left += 1;
      continue;
    }
    out.push_back(name);
  }
  return out;
}

}  // namespace

// Time that the host takes to launch a repeated sequence, which a graph would not take.
void add_graphs_rule(HostView& view) {
  const double host = view.unit.host_ns - view.stalled_ns;
  double claimed = 0;
  for (const AlikeSequences& alike : sequences_by_kernels(view)) {
    const RepeatedSequence& sequence = alike.all;
    const std::string what =
        fmt::format("{} x {} on {}", round_of(sequence), sequence.repeats,
                    alike.devices.size() > 1 ? counted(alike.devices.size(), "device")
                                             : fmt::format("stream {}", sequence.stream));
    const double nodes = static_cast<double>(sequence.length) * sequence.repeats * view.share;
    const double all = static_cast<double>(sequence.total_ns - sequence.busy_ns) * view.share;
    const double late = std::min(all, std::max(0.0, host - claimed));
    // Queued kernels begin one after the other; nodes of a graph do so in less time.
    const double queued = std::min(all - late, view.idle(IdleCause::kKernelToKernel));
    const double gap = late + std::max(0.0, queued - nodes * kNodeGap.mid);
    if (gap < kLaunchBound * view.length) continue;
    edit::LaunchAsGraph edit;
    const std::string hindrance = captures(view, alike, edit);
    if (!hindrance.empty()) {
      view.hindrance = hindrance;
      view.advice.no_gain.push_back(
          {"a CUDA graph of " + what,
           {},
           std::nullopt,
           "it cannot be captured in its present form: " + clean(hindrance)});
      continue;
    }
    if (edit.groups.empty()) continue;
    claimed += late;
    const double rounds = sequence.repeats * view.share;
    const bool parts = !sequence.hindrance.empty();
    const double launches = view.unit.kind == "step" && !parts ? std::min(1.0, rounds) : rounds;
    const Interval3 recorder = view.unit.recorder_ns * (host > 0 ? late / host : 0);
    const double idle = late + queued;
    const Interval3 saved = {
        idle - recorder.high - nodes * kNodeGap.high - launches * kGraphLaunch.high,
        idle - recorder.mid - nodes * kNodeGap.mid - launches * kGraphLaunch.mid,
        idle - recorder.low - nodes * kNodeGap.low - launches * kGraphLaunch.low};
    Intervention out = from_remedy("cuda_graphs");
    out.kernels = distinct(sequence.kernels, out.kernels_left_out);
    out.evidence.push_back({"repeated launch sequence", what, "timeline"});
    out.evidence.push_back(
        {"device idle in it, between its launches", view.part(idle), "timeline"});
    const LaunchStats& launch = view.facts.timeline->launches;
    if (launch.launches > 0 && launch.call_p50_ns > 0)
      out.evidence.push_back(
          {"kernels shorter than the call that launched them",
           fmt::format("{} of {}, a call takes {}", format_count(launch.tiny),
                       format_count(launch.launches), short_ns(launch.call_p50_ns)),
           "timeline"});
    out.evidence.push_back(
        parts ? Evidence{"a graph of the launches between two copies to the host",
                         fmt::format("{} at a time", counted(sequence.between_copies, "launch")),
                         "timeline"}
              : Evidence{"no obstacle to a capture",
                         "no wait, no allocation, no memcpy to the host, equal launch shapes in "
                         "each round",
                         "timeline"});
    out.assumptions.push_back(
        fmt::format("the recorder added {} to {} of that; a graph node takes {:.1f} to {:.1f} "
                    "us, a graph launch {:.0f} to {:.0f} us",
                    short_ns(recorder.low), short_ns(recorder.high), kNodeGap.low / 1e3,
                    kNodeGap.high / 1e3, kGraphLaunch.low / 1e3, kGraphLaunch.high / 1e3));
    if (view.unit.kind == "step" && !parts)
      out.assumptions.emplace_back("what repeats in a step is captured as one graph");
    out.change.edits.emplace_back(std::move(edit));
    view.add(std::move(out), saved, gap, "B");
  }
  view.graphed_ns = claimed;
}

}  // namespace purlin::analyze
