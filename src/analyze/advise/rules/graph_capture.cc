// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/graph_capture.h"

#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/host.h"
#include "model/profile/copy_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace purlin::analyze {
namespace {

constexpr double kMostGroups = 0.5;  // what is in more of them hinders

class CaptureFinder {
 public:
  CaptureFinder(const Facts& facts, const RepeatedSequence& sequence)
      : facts_(facts), sequence_(sequence), timeline_(facts.profile->timeline) {}

  GraphCapture run() {
    find_steps();
    group();
    std::size_t launches = 0;
    for (const WorkGroup& one : out_.groups) launches += one.size();
    out_.worth_it = launches >= 2 * out_.groups.size() && !only_communication();
    find_hindrance();
    return std::move(out_);
  }

 private:
  const Activity& at(std::uint32_t index) const { return timeline_.activities[index]; }
  bool goes_to_host(const Activity& activity) const {
    return activity.kind == ActivityKind::kCopy && activity.row < facts_.profile->copies.size() &&
           copy_direction(facts_.profile->copies[activity.row].kind) == "d2h";
  }

  bool in_sequence(const Activity& activity) const {
    if (activity.device != sequence_.device || activity.process != sequence_.process ||
        activity.stream != sequence_.stream)
      return false;
    return std::any_of(
        sequence_.stretches.begin(), sequence_.stretches.end(), [&](const auto& stretch) {
          return begin_of(activity) >= stretch.first && begin_of(activity) <= stretch.second;
        });
  }

  // By the step in which its process launched it; ranks come to a step at different times.
  std::size_t step_of(const Activity& activity) const {
    const bool on_host = host_steps_.size() >= 2 && activity.call < timeline_.calls.size();
    const std::int64_t time =
        on_host ? begin_of(timeline_.calls[activity.call]) : begin_of(activity);
    const std::vector<std::int64_t>& steps = on_host ? host_steps_ : device_steps_;
    return static_cast<std::size_t>(std::upper_bound(steps.begin(), steps.end(), time) -
                                    steps.begin());
  }

  void find_steps() {
    for (const Range& range : timeline_.ranges)
      if (range.kind == RangeKind::kStep && range.process == sequence_.process)
        host_steps_.push_back(begin_of(range));
    for (const StepTime& step : facts_.timeline->steps) device_steps_.push_back(begin_of(step));
  }

  void group() {
    const bool by_step = facts_.unit.kind == "step";
    const auto period = static_cast<std::size_t>(std::max(1, sequence_.length));
    std::size_t before = 0, count = 0;
    bool cut = true;
    for (std::uint32_t i = 0; i < timeline_.activities.size(); ++i) {
      if (!in_sequence(at(i))) continue;
      const std::size_t now = by_step ? step_of(at(i)) : count++ / period;
      if (sequence_.between_copies > 0 && goes_to_host(at(i))) {
        cut = true;  // a graph ends before it
        continue;
      }
      if (cut || now != before) out_.groups.emplace_back();
      cut = false;
      out_.groups.back().push_back(i);
      before = now;
    }
  }

  bool only_communication() const {
    const std::vector<bool> communication = communication_rows(*facts_.profile);
    return std::all_of(out_.groups.begin(), out_.groups.end(), [&](const WorkGroup& one) {
      return std::all_of(one.begin(), one.end(), [&](std::uint32_t i) {
        return work_of(at(i), communication) == kCommunicating;
      });
    });
  }

  // Calls between the first and the last launch of a group, by the threads that launch it.
  void find_hindrance() {
    std::map<std::uint32_t, std::size_t> found;  // name -> groups
    for (const WorkGroup& one : out_.groups) {
      std::uint32_t first = kNone, last = 0;
      std::set<std::uint32_t> threads;
      for (const std::uint32_t i : one) {
        const std::uint32_t call = at(i).call;
        if (call >= timeline_.calls.size()) continue;
        first = std::min(first, call);
        last = std::max(last, call);
        threads.insert(timeline_.calls[call].thread);
      }
      std::set<std::uint32_t> names;
      for (std::uint32_t c = first; first != kNone && c < last; ++c) {
        const Call& call = timeline_.calls[c];
        if (call.process != sequence_.process || !threads.contains(call.thread)) continue;
        if (allocates_outside_of_streams(timeline_, call) || waits_for_device(timeline_, call))
          names.insert(call.name);
      }
      for (const std::uint32_t name : names) ++found[name];
    }
    const auto most = std::max_element(found.begin(), found.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    const double groups = static_cast<double>(out_.groups.size());
    if (most == found.end() || static_cast<double>(most->second) <= kMostGroups * groups) return;
    out_.hindrance = fmt::format(
        "{} between its launches in {} of {} {}",
        most->first < timeline_.names.size() ? timeline_.names[most->first] : "a call",
        most->second, out_.groups.size(), facts_.unit.kind == "step" ? "steps" : "rounds");
  }

  const Facts& facts_;
  const RepeatedSequence& sequence_;
  const Timeline& timeline_;
  std::vector<std::int64_t> host_steps_, device_steps_;  // begins, in order
  GraphCapture out_;
};

}  // namespace

GraphCapture find_capture(const Facts& facts, const RepeatedSequence& sequence) {
  return CaptureFinder(facts, sequence).run();
}

}  // namespace purlin::analyze
