// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/one_off.h"

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr std::size_t kMinGaps = 20;
constexpr std::int64_t kLongGapFactor = 20;  // of the median gap
// What happens three times is usual, as a stall in each fourth step.
constexpr std::size_t kFewGaps = 3;
constexpr std::int64_t kWorthwhileDivisor = 100;  // of the window

void add_gaps(const Timeline& timeline, const DeviceWork& work, Interval window,
              std::vector<Interval>& gaps) {
  std::int64_t until = window.begin;
  const auto add = [&](std::int64_t end) {
    if (end > until) gaps.push_back({until, end});
  };
  for (std::size_t i = work.first; i < work.last; ++i) {
    const Interval interval = interval_of(timeline.activities[i]);
    if (interval.begin >= window.end) break;
    add(interval.begin);
    until = std::max(until, interval.end);
  }
  add(window.end);
}

}  // namespace

std::vector<Interval> find_one_off_gaps(const Timeline& timeline, const DeviceWork& work,
                                        const std::vector<Interval>& parts, std::size_t steps) {
  std::vector<Interval> gaps;
  std::int64_t all = 0;
  for (const Interval& part : parts) {
    add_gaps(timeline, work, part, gaps);
    all += part.length();
  }
  if (gaps.size() < kMinGaps) return {};
  std::vector<std::int64_t> lengths;
  for (const Interval& gap : gaps) lengths.push_back(gap.length());
  std::sort(lengths.begin(), lengths.end());
  const std::int64_t long_gap = kLongGapFactor * lengths[lengths.size() / 2];
  const std::size_t few = steps == 0 ? kFewGaps : std::clamp<std::size_t>(steps / 2, 1, kFewGaps);
  std::vector<Interval> out;
  std::int64_t sum = 0;
  for (const Interval& gap : gaps) {
    if (gap.length() <= long_gap) continue;
    const auto as_long =
        lengths.end() - std::lower_bound(lengths.begin(), lengths.end(), gap.length() / 2);
    if (static_cast<std::size_t>(as_long) >= few) continue;
    out.push_back(gap);
    sum += gap.length();
  }
  if (sum < all / kWorthwhileDivisor) return {};
  return out;
}

}  // namespace purlin::analyze
