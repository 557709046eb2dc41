// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/walk.h"

#include "analyze/timeline/host.h"
#include "analyze/timeline/streams.h"
#include "base/text.h"
#include "model/profile/copy_kind.h"

#include <algorithm>

namespace purlin::analyze {

std::string_view name_in(const Timeline& timeline, std::uint32_t name) {
  return name < timeline.names.size() ? std::string_view(timeline.names[name]) : std::string_view();
}

bool within_device(const Profile& profile, const Activity& activity) {
  return activity.kind == ActivityKind::kCopy && activity.row < profile.copies.size() &&
         copy_direction(profile.copies[activity.row].kind) == "d2d";
}

Walk::Walk(const Facts& facts) : facts_(facts) {
  const Profile& profile = *facts.profile;
  const auto& names = profile.timeline.names;
  trains_ = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return starts_with(name, "autograd::engine::evaluate_function") ||
           starts_with(name, "Optimizer.step#");
  });
  for (std::size_t i = 0; i < profile.kernels.size(); ++i)
    touches_.push_back(touch_of(profile.kernels[i], facts.rows.kernels[facts.row_of[i]]));
  report_touches_.resize(facts.rows.kernels.size());
  for (std::size_t i = 0; i < touches_.size(); ++i) report_touches_[facts.row_of[i]] = touches_[i];
  taken_.assign(profile.timeline.activities.size(), false);
  if (profile.timeline.empty()) return;
  const Streams streams(profile.timeline);
  const HostFacts host(profile);
  for (const StreamWork& stream : streams.all()) cut(host, stream.activities);
}

void Walk::cut(const HostFacts& host, std::span<const std::uint32_t> stream) {
  const Timeline& timeline = facts_.profile->timeline;
  const auto waited_between = [&](const Activity& last, const Activity& next) {
    if (last.call >= timeline.calls.size() || next.call >= timeline.calls.size()) return false;
    const NamedIntervals& waits = host.process(next.process).waiting;
    const std::int64_t from = end_of(timeline.calls[last.call]),
                       to = begin_of(timeline.calls[next.call]);
    const auto wait = std::partition_point(
        waits.begin(), waits.end(),
        [from](const NamedInterval& interval) { return interval.interval.end <= from; });
    return wait != waits.end() && wait->interval.begin < to;
  };
  const Activity* last = nullptr;
  for (const std::uint32_t index : stream) {
    const Activity& activity = timeline.activities[index];
    // Libraries clear their workspace before a kernel; a copy within the device hands data on.
    if (activity.kind == ActivityKind::kSet || within_device(*facts_.profile, activity)) continue;
    if (activity.kind != ActivityKind::kKernel || activity.row >= touches_.size()) {
      last = nullptr;
      continue;
    }
    if (last == nullptr || step_of(*last) != step_of(activity) || waited_between(*last, activity))
      runs_.emplace_back();
    runs_.back().push_back(index);
    last = &activity;
  }
}

const Activity& Walk::at(std::uint32_t activity) const {
  ++looks_;
  return facts_.profile->timeline.activities[activity];
}
const Touch& Walk::touch(std::uint32_t activity) const { return touches_[at(activity).row]; }
const KernelStat& Walk::stat(std::uint32_t activity) const {
  return facts_.rows.kernels[facts_.row_of[at(activity).row]];
}
void Walk::take(std::span<const std::uint32_t> activities) {
  for (const std::uint32_t activity : activities) taken_[activity] = true;
}

int Walk::step_of(const Activity& activity) const {
  const auto& steps = facts_.timeline->steps;
  const auto next = std::partition_point(steps.begin(), steps.end(), [&](const StepTime& step) {
    return step.start_ns <= activity.start_ns;
  });
  return static_cast<int>(next - steps.begin()) - 1;
}

double Walk::duration(std::uint32_t activity) const {
  return static_cast<double>(std::max<std::int64_t>(0, at(activity).duration_ns));
}
double Walk::duration(std::span<const std::uint32_t> activities) const {
  double sum = 0;
  for (const std::uint32_t activity : activities) sum += duration(activity);
  return sum;
}

void Chains::add(std::span<const std::uint32_t> group) {
  std::vector<std::size_t> key;
  for (const std::uint32_t activity : group)
    key.push_back(walk_.facts().row_of[walk_.at(activity).row]);
  Chain& chain = chains_[key];
  if (chain.rows.empty())
    for (const std::uint32_t activity : group) chain.rows.push_back(walk_.at(activity).row);
  chain.groups.emplace_back(group.begin(), group.end());
  for (const std::uint32_t activity : group) {
    chain.ns += walk_.duration(activity);
    chain.exposed_ns +=
        walk_.duration(activity) * walk_.facts().exposure.share[walk_.at(activity).row];
  }
}

std::vector<const Chain*> Chains::all() const {
  std::vector<const Chain*> out;
  for (const auto& [key, chain] : chains_) out.push_back(&chain);
  std::stable_sort(out.begin(), out.end(),
                   [](const Chain* a, const Chain* b) { return a->ns > b->ns; });
  return out;
}

}  // namespace purlin::analyze
