// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/savings/exposure.h"

#include "analyze/timeline/host.h"
#include "analyze/timeline/intervals.h"
#include "analyze/timeline/streams.h"

#include <algorithm>

namespace purlin::analyze {
namespace {

// Of the kernels. Where fewer have a known call, as the nodes of graphs that Purlin recorded
// without the host's calls, most waits of the host are not known either.
constexpr double kFewestLinked = 0.5;

// Whether the host stood still until it ended.
bool host_waits(const HostFacts& host, const Activity& activity) {
  const NamedIntervals& waits = host.process(activity.process).waiting;
  const std::int64_t end = end_of(activity);
  const auto wait = std::partition_point(
      waits.begin(), waits.end(),
      [end](const NamedInterval& interval) { return interval.interval.end < end; });
  return wait != waits.end() && wait->interval.begin < end;
}

std::int64_t exposed(const Timeline& timeline, const HostFacts& host, const Activity& activity,
                     const Activity* next) {
  const std::int64_t begin = begin_of(activity), end = end_of(activity);
  if (next == nullptr || host_waits(host, activity)) return end - begin;
  if (next->call >= timeline.calls.size()) return end - begin;
  const std::int64_t queued = end_of(timeline.calls[next->call]);
  return std::clamp(end - std::max(begin, queued), std::int64_t{0}, end - begin);
}

}  // namespace

Exposure measure_exposure(const Profile& profile) {
  const Timeline& timeline = profile.timeline;
  Exposure out;
  out.share.assign(profile.kernels.size(), 1);
  if (timeline.activities.empty() || !knows_calls(timeline)) return out;
  out.known = true;
  const HostFacts host(profile);
  const Streams streams(timeline);
  std::vector<double> part(profile.kernels.size()), whole(profile.kernels.size());
  double all_part = 0, all_whole = 0, kernels = 0, linked = 0;
  for (const StreamWork& stream : streams.all())
    for (std::size_t i = 0; i < stream.activities.size(); ++i) {
      const Activity& activity = timeline.activities[stream.activities[i]];
      if (activity.kind != ActivityKind::kKernel || activity.row >= part.size()) continue;
      kernels += 1;
      linked += activity.call < timeline.calls.size();
      const Activity* next = i + 1 < stream.activities.size()
                                 ? &timeline.activities[stream.activities[i + 1]]
                                 : nullptr;
      const auto share = static_cast<double>(exposed(timeline, host, activity, next));
      const auto length = static_cast<double>(end_of(activity) - begin_of(activity));
      part[activity.row] += share;
      whole[activity.row] += length;
      all_part += share;
      all_whole += length;
    }
  if (linked < kFewestLinked * kernels) {
    out.known = false;
    return out;
  }
  for (std::size_t i = 0; i < part.size(); ++i)
    if (whole[i] > 0) out.share[i] = part[i] / whole[i];
  if (all_whole > 0) out.all = all_part / all_whole;
  std::int64_t device_end = begin_of(timeline.activities.front()), host_end = device_end;
  for (const Activity& activity : timeline.activities)
    device_end = std::max(device_end, end_of(activity));
  for (const Call& call : timeline.calls) host_end = std::max(host_end, end_of(call));
  out.waited_ns = static_cast<double>(std::max<std::int64_t>(0, device_end - host_end));
  for (std::uint32_t i = 0; i < profile.processes.size(); ++i)
    for (const NamedInterval& wait : host.process(i).waiting)
      out.waited_ns += static_cast<double>(wait.interval.length());
  return out;
}

}  // namespace purlin::analyze
