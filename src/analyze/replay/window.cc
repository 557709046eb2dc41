// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/window.h"

#include <algorithm>
#include <limits>

namespace purlin::analyze {
namespace {

constexpr std::size_t kMinReplaySteps = 10;
constexpr std::size_t kEnoughEvents = 50'000;  // with enough steps, more make it slower only
constexpr double kOutlier = 2;                 // of the median: something happened once
constexpr std::ptrdiff_t kUsualOutliers = 3;   // outliers that happen again and again

std::size_t events_in(const Timeline& timeline, Interval window) {
  const auto inside = [&](const auto& records) {
    return std::count_if(records.begin(), records.end(), [&](const auto& record) {
      return begin_of(record) >= window.begin && begin_of(record) < window.end;
    });
  };
  return static_cast<std::size_t>(inside(timeline.activities) + inside(timeline.calls));
}

double quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
}

// The longest run of steps without an outlier, neither a step nor the time to the next one: between
// two traces of one program lies time that was not recorded.
std::pair<std::size_t, std::size_t> even_run(const std::vector<StepTime>& steps, std::size_t first,
                                             double median) {
  std::pair<std::size_t, std::size_t> best{first, first};
  const auto long_time = [&](std::int64_t ns) {
    return static_cast<double>(ns) > kOutlier * median;
  };
  for (std::size_t i = first, from = first; i <= steps.size(); ++i) {
    const bool outlier = i == steps.size() || long_time(steps[i].duration_ns);
    const bool apart = !outlier && i > from && long_time(begin_of(steps[i]) - end_of(steps[i - 1]));
    if (!outlier && !apart) continue;
    if (i - from > best.second - best.first) best = {from, i};
    from = outlier ? i + 1 : i;
  }
  return best;
}

Interval span_of(const std::vector<StepTime>& steps, std::size_t from, std::size_t to) {
  return {begin_of(steps[from]), end_of(steps[to - 1])};
}

ReplayWindow whole(const Timeline& timeline) {
  ReplayWindow out;
  out.time = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const Activity& activity : timeline.activities) {
    out.time.begin = std::min(out.time.begin, begin_of(activity));
    out.time.end = std::max(out.time.end, begin_of(activity) + 1);
  }
  return out;
}

}  // namespace

ReplayWindow choose_window(const Profile& profile, const TimelineAnalysis& timeline) {
  const std::vector<StepTime>& steps = timeline.steps;
  if (steps.size() < 2) {
    ReplayWindow out = whole(profile.timeline);
    if (timeline.devices.empty()) return out;
    out.time = {timeline.devices[0].begin_ns,
                timeline.devices[0].begin_ns + timeline.devices[0].window_ns};
    for (const DeviceTime& device : timeline.devices)
      out.time = {std::min(out.time.begin, device.begin_ns),
                  std::max(out.time.end, device.begin_ns + device.window_ns)};
    return out;
  }
  const std::size_t first = steps.size() > 2 ? 1 : 0;
  std::vector<double> lengths;
  for (std::size_t i = first; i < steps.size(); ++i)
    lengths.push_back(static_cast<double>(steps[i].duration_ns));
  std::sort(lengths.begin(), lengths.end());
  const double median = quantile(lengths, 0.5);
  auto [from, to] = even_run(steps, first, median);
  const auto outliers = std::count_if(lengths.begin(), lengths.end(),
                                      [&](double ns) { return ns > kOutlier * median; });
  if (to - from < 2 || outliers >= kUsualOutliers) from = first, to = steps.size();
  const std::size_t events = events_in(profile.timeline, span_of(steps, from, to));
  const std::size_t enough =
      std::max(kMinReplaySteps, (to - from) * kEnoughEvents / std::max<std::size_t>(1, events));
  to = std::min(to, from + enough);
  ReplayWindow out;
  out.time = span_of(steps, from, to);
  out.steps = static_cast<double>(to - from);
  for (std::size_t i = first; i < steps.size(); ++i)
    if ((i < from || i >= to) && static_cast<double>(steps[i].duration_ns) > kOutlier * median)
      out.long_steps += 1;
  for (std::size_t i = from; i < to; ++i) out.step_ends.push_back(end_of(steps[i]));
  if (lengths.size() >= 3 && median > 0)
    out.spread = (quantile(lengths, 0.75) - quantile(lengths, 0.25)) / 2 / median;
  return out;
}

}  // namespace purlin::analyze
