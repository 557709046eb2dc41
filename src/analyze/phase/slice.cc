// SPDX-License-Identifier: Apache-2.0
#include "analyze/phase/slice.h"

#include "analyze/timeline/pace.h"
#include "base/text.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace purlin::analyze {
namespace {

// Share of the kernel time outside of the phase for which the rows are cut; of a guessed phase.
constexpr double kWorthCutting = 0.05, kGuessWorthCutting = 0.2;
// Few rounds are a thin reason to leave launches of a row out.
constexpr std::size_t kMinGuessedSteps = 10;
constexpr double kLaunchesMissing = 0.005;

// Durations of a row's work inside of the window, and whether all of its work is there.
struct RowPart {
  Sketch duration;
  double bytes = 0;
  bool whole = true;
};

const Interval* window_for(const std::vector<DeviceWindow>& windows, const Activity& activity) {
  const std::int64_t begin = begin_of(activity);
  for (const DeviceWindow& candidate : windows)
    if (candidate.device == activity.device && begin >= candidate.window.begin &&
        begin < candidate.window.end)
      return &candidate.window;
  return nullptr;
}

bool inside(const std::vector<DeviceWindow>& windows, const Activity& activity) {
  return window_for(windows, activity) != nullptr;
}

// Rows keep their exact sketch where all of their work is inside; rows without work go.
template <class Row>
std::vector<std::uint32_t> keep_rows(std::vector<Row>& rows, std::vector<RowPart>& parts) {
  std::vector<std::uint32_t> places(rows.size(), kNone);
  std::vector<Row> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (parts[i].duration.empty()) continue;
    // Launches of the row that the timeline does not hold are outside, too.
    parts[i].whole = parts[i].whole && parts[i].duration.count() > rows[i].duration.count() - 0.5;
    places[i] = static_cast<std::uint32_t>(kept.size());
    if (!parts[i].whole) rows[i].duration = std::move(parts[i].duration);
    if constexpr (requires { rows[i].bytes; })
      if (!parts[i].whole) rows[i].bytes = parts[i].bytes;
    kept.push_back(std::move(rows[i]));
  }
  rows = std::move(kept);
  return places;
}

class Slicer {
 public:
  Slicer(const Profile& profile, const std::vector<DeviceWindow>& windows)
      : from_(profile.timeline), windows_(windows), out_(profile) {}

  Profile run() {
    cut_rows();
    cut_stalls();
    find_host_windows();
    cut_host();
    cut_activities();
    return std::move(out_);
  }

 private:
  void cut_rows() {
    for (const KernelRow& row : out_.kernels) launched_.insert(row.name);
    std::vector<RowPart> kernels(out_.kernels.size()), copies(out_.copies.size());
    for (const Activity& activity : from_.activities) {
      std::vector<RowPart>& parts = activity.kind == ActivityKind::kKernel ? kernels : copies;
      if (activity.row >= parts.size()) continue;
      RowPart& part = parts[activity.row];
      if (!inside(windows_, activity)) {
        part.whole = false;
        continue;
      }
      part.duration.add(static_cast<double>(interval_of(activity).length()));
      part.bytes += static_cast<double>(activity.bytes);
    }
    kernel_places_ = keep_rows(out_.kernels, kernels);
    copy_places_ = keep_rows(out_.copies, copies);
  }

  // A kernel without a row would come back as one that was sampled only.
  void cut_stalls() {
    std::set<std::string_view> kept;
    for (const KernelRow& row : out_.kernels) kept.insert(row.name);
    std::erase_if(out_.stalls.functions, [&](const StallFunction& function) {
      return launched_.contains(function.name) && !kept.contains(function.name);
    });
  }

  // Of each process: from the first call that launched work of a window to the window's end.
  void find_host_windows() {
    std::map<std::pair<std::uint32_t, const Interval*>, Interval> found;
    for (const Activity& activity : from_.activities) {
      const Interval* window = window_for(windows_, activity);
      if (window == nullptr) continue;
      Interval& host = found.try_emplace({activity.process, window}, *window).first->second;
      if (activity.call < from_.calls.size())
        host.begin = std::min(host.begin, begin_of(from_.calls[activity.call]));
    }
    for (const auto& [key, host] : found) host_[key.first].push_back(host);
    for (auto& [process, hosts] : host_) join(hosts);
  }
  // In order, disjoint.
  static void join(std::vector<Interval>& all) {
    std::sort(all.begin(), all.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    std::vector<Interval> out;
    for (const Interval& one : all) {
      if (out.empty() || one.begin > out.back().end)
        out.push_back(one);
      else
        out.back().end = std::max(out.back().end, one.end);
    }
    all = std::move(out);
  }
  template <class Record>
  bool touches_host(const Record& record) const {
    const auto host = host_.find(record.process);
    if (host == host_.end()) return false;
    const auto after = std::partition_point(
        host->second.begin(), host->second.end(),
        [&](const Interval& interval) { return interval.end < begin_of(record); });
    return after != host->second.end() && after->begin <= end_of(record);
  }

  // Copies the records of the windows and returns for each record its place, or kNone.
  template <class Record>
  std::vector<std::uint32_t> cut(const std::vector<Record>& from, std::vector<Record>& to) const {
    std::vector<std::uint32_t> places(from.size(), kNone);
    to.clear();
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!touches_host(from[i])) continue;
      places[i] = static_cast<std::uint32_t>(to.size());
      to.push_back(from[i]);
    }
    return places;
  }

  static std::uint32_t moved(const std::vector<std::uint32_t>& places, std::uint32_t index) {
    return index < places.size() ? places[index] : kNone;
  }

  void cut_host() {
    Timeline& to = out_.timeline;
    call_places_ = cut(from_.calls, to.calls);
    const std::vector<std::uint32_t> ops = cut(from_.ops, to.ops);
    cut(from_.ranges, to.ranges);
    for (Call& call : to.calls) call.op = moved(ops, call.op);
    for (Op& op : to.ops) op.parent = moved(ops, op.parent);
  }

  void cut_activities() {
    Timeline& to = out_.timeline;
    to.activities.clear();
    to.begin_ns = std::numeric_limits<std::int64_t>::max();
    to.end_ns = std::numeric_limits<std::int64_t>::min();
    for (const DeviceWindow& window : windows_) {
      to.begin_ns = std::min(to.begin_ns, window.window.begin);
      to.end_ns = std::max(to.end_ns, window.window.end);
    }
    for (Activity activity : from_.activities) {
      if (!inside(windows_, activity)) continue;
      activity.row = moved(activity.kind == ActivityKind::kKernel ? kernel_places_ : copy_places_,
                           activity.row);
      activity.call = moved(call_places_, activity.call);
      to.activities.push_back(activity);
    }
  }

  const Timeline& from_;
  const std::vector<DeviceWindow>& windows_;
  Profile out_;
  std::set<std::string> launched_;                       // names of all kernels
  std::map<std::uint32_t, std::vector<Interval>> host_;  // by process
  std::vector<std::uint32_t> kernel_places_, copy_places_, call_places_;
};

struct KernelTotals {  // of the timeline
  double outside = 0, outside_ns = 0, all_ns = 0;
};
KernelTotals totals_of(const Timeline& timeline, const std::vector<DeviceWindow>& windows) {
  KernelTotals totals;
  for (const Activity& activity : timeline.activities) {
    if (activity.kind != ActivityKind::kKernel) continue;
    const auto ns = static_cast<double>(interval_of(activity).length());
    totals.all_ns += ns;
    if (inside(windows, activity)) continue;
    ++totals.outside;
    totals.outside_ns += ns;
  }
  return totals;
}

std::vector<DeviceWindow> windows_of(const TimelineAnalysis& analysis) {
  std::vector<DeviceWindow> windows;
  for (const DeviceTime& device : analysis.devices)
    for (const auto& [begin, end] : device.parts) windows.push_back({device.device, {begin, end}});
  return windows;
}

bool has_start_up(const TimelineAnalysis& analysis) {
  return std::any_of(analysis.phases.begin(), analysis.phases.end(),
                     [](const Phase& phase) { return phase.kind == PhaseKind::kStartUp; });
}

bool has_note(const Profile& profile, std::initializer_list<std::string_view> causes) {
  const std::vector<CoverageNote>& notes = profile.coverage.notes;
  return std::any_of(notes.begin(), notes.end(), [&](const CoverageNote& note) {
    return std::find(causes.begin(), causes.end(), note.cause) != causes.end();
  });
}

bool has_torch_trace(const Profile& profile) { return has_note(profile, {"torch_trace"}); }

// Whether the timeline is that of a plain profile: all launches of a part of the run
// (docs/design/timeline-windows.md). Its steady state then represents that of the run. A trace of
// PyTorch is such a part where Purlin recorded the start-up only: its rows are of no steady state.
bool is_of_windows(const Profile& profile) {
  if (profile.source != "purlin") return false;
  if (has_torch_trace(profile) && !has_note(profile, {"launch_bound", "no_windows", "torch_end"}))
    return false;
  return std::none_of(profile.processes.begin(), profile.processes.end(),
                      [](const ProcessInfo& process) { return process.timeline_requested; });
}

// Launches of the rows that are not in the timeline are outside of the phase, too.
void add_launches_beyond(const Profile& profile, KernelTotals& totals) {
  double launches = 0, ns = 0, in_timeline = 0;
  for (const KernelRow& row : profile.kernels) {
    launches += row.duration.count();
    ns += row.duration.total_ns();
  }
  for (const Activity& activity : profile.timeline.activities)
    if (activity.kind == ActivityKind::kKernel) ++in_timeline;
  totals.outside += std::max(0.0, launches - in_timeline);
  totals.outside_ns += std::max(0.0, ns - totals.all_ns);
  totals.all_ns = std::max(ns, totals.all_ns);
}

}  // namespace

Profile slice(const Profile& profile, const std::vector<DeviceWindow>& windows) {
  return Slicer(profile, windows).run();
}

bool has_every_launch(const Profile& profile) {
  // The trace of some steps can have more launches than capture recorded of the rest of the run.
  if (has_torch_trace(profile)) return false;
  double in_rows = 0, in_timeline = 0;
  for (const KernelRow& row : profile.kernels) in_rows += row.duration.count();
  for (const Activity& activity : profile.timeline.activities)
    if (activity.kind == ActivityKind::kKernel) ++in_timeline;
  return profile.timeline.left_out == 0 && in_timeline >= (1 - kLaunchesMissing) * in_rows;
}

std::optional<Profile> cut_to(const Profile& profile, const TimelineAnalysis& analysis) {
  const std::vector<DeviceWindow> windows = windows_of(analysis);
  const auto& activities = profile.timeline.activities;
  const bool all = std::all_of(activities.begin(), activities.end(),
                               [&](const Activity& activity) { return inside(windows, activity); });
  if (all || !has_every_launch(profile)) return std::nullopt;
  return slice(profile, windows);
}

Result<TimelineAnalysis> select_phase(Profile& profile, PhaseChoice choice) {
  TimelineAnalysis analysis = analyze_timeline(profile, choice);
  if (choice == PhaseChoice::kStartUp && !has_start_up(analysis))
    return error(Code::kNotFound, "--phase startup: {}; use --phase all",
                 analysis.phases.empty() ? "no steps are known in this profile, so no start-up is"
                                         : "the profile begins with its first step");
  if (choice == PhaseChoice::kSteadyState) apply_pace(profile, analysis);
  if (choice == PhaseChoice::kAll || analysis.phases.empty()) return analysis;
  const std::vector<DeviceWindow> windows = windows_of(analysis);
  KernelTotals totals = totals_of(profile.timeline, windows);
  const bool of_windows = is_of_windows(profile);
  if (of_windows) add_launches_beyond(profile, totals);
  const bool guessed = analysis.steps_from == kGuessedSteps;
  const bool little_outside =
      totals.outside_ns < (guessed ? kGuessWorthCutting : kWorthCutting) * totals.all_ns;
  const bool thin = guessed && analysis.steps.size() < kMinGuessedSteps;
  if (choice == PhaseChoice::kSteadyState && (little_outside || thin)) return analysis;
  if (!of_windows && !has_every_launch(profile)) {
    analysis.limits.emplace_back(
        "kernel rows are of the whole run: the timeline does not hold every launch");
    return analysis;
  }
  analysis.rows_of_phase = true;
  analysis.launches_outside = totals.outside;
  analysis.kernel_ns_outside = totals.outside_ns;
  profile = slice(profile, windows);
  return analysis;
}

Result<PhaseChoice> phase_from_text(std::string_view text) {
  if (text == "steady") return PhaseChoice::kSteadyState;
  if (text == "startup") return PhaseChoice::kStartUp;
  if (text == "all") return PhaseChoice::kAll;
  return error(Code::kInvalid, "--phase '{}': give steady, startup or all", text);
}

}  // namespace purlin::analyze
