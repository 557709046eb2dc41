// SPDX-License-Identifier: Apache-2.0
#include "analyze/page/sparks.h"

#include "analyze/report/identity.h"
#include "analyze/timeline/intervals.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

namespace purlin::analyze {

Sparks sparks_of(const Profile& whole, const Report& report, std::size_t rows) {
  Sparks out(rows);
  const std::vector<Activity>& activities = whole.timeline.activities;
  if (activities.empty()) return out;
  Interval all{kLatest, -kLatest};
  for (const Activity& activity : activities) {
    all.begin = std::min(all.begin, begin_of(activity));
    all.end = std::max(all.end, end_of(activity));
  }
  if (all.length() <= 0) return out;
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < rows; ++i)
    places.emplace(row_id(report.kernels[i], report.group_by), i);
  std::vector<std::size_t> row_of;
  const Report grouped = build_rows(whole, report.group_by, {}, &row_of);
  std::vector<std::size_t> place_of(grouped.kernels.size(), rows);
  for (std::size_t i = 0; i < grouped.kernels.size(); ++i)
    if (const auto place = places.find(row_id(grouped.kernels[i], report.group_by));
        place != places.end())
      place_of[i] = place->second;
  const double bucket = static_cast<double>(all.length()) / static_cast<double>(kSparkBuckets);
  for (const Activity& activity : activities) {
    if (activity.kind != ActivityKind::kKernel || activity.row >= row_of.size()) continue;
    const std::size_t place = place_of[row_of[activity.row]];
    if (place >= rows) continue;
    if (out[place].empty()) out[place].resize(kSparkBuckets);
    const double middle = static_cast<double>(begin_of(activity) - all.begin) +
                          static_cast<double>(interval_of(activity).length()) / 2;
    const auto at = std::min(kSparkBuckets - 1, static_cast<std::size_t>(middle / bucket));
    out[place][at] += static_cast<double>(interval_of(activity).length());
  }
  return out;
}

}  // namespace purlin::analyze
