// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/streams.h"

#include <map>
#include <tuple>

namespace purlin::analyze {

Streams::Streams(const Timeline& timeline) {
  const auto& activities = timeline.activities;
  using Key = std::tuple<int, std::uint32_t, std::uint32_t>;
  std::map<Key, std::uint32_t> groups;
  std::vector<std::uint32_t> counts;
  Key last_key{-1, 0, 0};
  std::uint32_t last_group = 0;
  // Neighbours are mostly of one stream: the map is asked when that changes.
  const auto group_of = [&](const Activity& activity) {
    const Key key{activity.device, activity.process, activity.stream};
    if (key != last_key) {
      const auto next = static_cast<std::uint32_t>(groups.size());
      last_group = groups.try_emplace(key, next).first->second;
      last_key = key;
    }
    return last_group;
  };
  for (const Activity& activity : activities) {
    const std::uint32_t group = group_of(activity);
    if (group == counts.size()) {
      counts.push_back(0);
      streams_.push_back({activity.device, activity.process, activity.stream, {}});
    }
    ++counts[group];
  }
  std::vector<std::size_t> begins, next;
  std::size_t total = 0;
  for (const std::uint32_t count : counts) {
    begins.push_back(total);
    total += count;
  }
  next = begins;
  order_.resize(activities.size());
  for (std::size_t i = 0; i < activities.size(); ++i)
    order_[next[group_of(activities[i])]++] = static_cast<std::uint32_t>(i);
  for (std::size_t g = 0; g < streams_.size(); ++g)
    streams_[g].activities = std::span(order_).subspan(begins[g], counts[g]);
}

}  // namespace purlin::analyze
