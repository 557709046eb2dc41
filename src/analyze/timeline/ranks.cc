// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/ranks.h"

#include "analyze/timeline/device_time.h"
#include "analyze/timeline/median.h"
#include "base/text.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>

namespace purlin::analyze {
namespace {

// Ends of one collective spread by the network's and the kernels' own latency; clocks that differ
// by less than this are taken for one.
constexpr std::int64_t kSameClock = 50'000;

using Collectives = std::vector<Interval>;  // of one name on one device, in order

}  // namespace

std::vector<RankStats> compare_ranks(const Profile& profile, const std::vector<DeviceWork>& devices,
                                     const std::vector<bool>& communication,
                                     std::vector<std::string>& limits) {
  const Timeline& timeline = profile.timeline;
  if (devices.size() < 2) return {};
  // Name -> for each device what it ran. The partner of a send or receive cannot be found by
  // order.
  std::map<std::string_view, std::vector<Collectives>> by_name;
  for (std::size_t d = 0; d < devices.size(); ++d)
    for (std::size_t i = devices[d].first; i < devices[d].last; ++i) {
      const Activity& activity = timeline.activities[i];
      if (work_of(activity, communication) != kCommunicating) continue;
      const std::string_view name = profile.kernels[activity.row].name;
      if (name.find("SendRecv") != std::string_view::npos) continue;
      auto [entry, added] = by_name.try_emplace(name);
      if (added) entry->second.resize(devices.size());
      entry->second[d].push_back(interval_of(activity));
    }

  std::vector<bool> compared(devices.size());
  std::vector<const std::vector<Collectives>*> usable;
  std::size_t unmatched = 0;
  for (const auto& [name, lists] : by_name) {
    std::size_t members = 0, count = 0;
    bool same = true;
    for (const Collectives& list : lists) {
      if (list.empty()) continue;
      same = same && (members == 0 || list.size() == count);
      count = list.size();
      ++members;
    }
    if (members < 2) continue;
    if (!same) {
      ++unmatched;
      continue;
    }
    usable.push_back(&lists);
    for (std::size_t d = 0; d < lists.size(); ++d)
      if (!lists[d].empty()) compared[d] = true;
  }
  if (unmatched > 0)
    limits.push_back(
        fmt::format("{} of collectives not compared between devices: the number of executions "
                    "differs between them",
                    counted(unmatched, "kind")));
  if (usable.empty()) return {};

  // Clocks: the median distance of a device's ends from the first member's.
  std::vector<std::vector<std::int64_t>> distances(devices.size());
  for (const auto* lists : usable) {
    std::size_t first = 0;
    while ((*lists)[first].empty()) ++first;
    for (std::size_t d = first + 1; d < lists->size(); ++d)
      for (std::size_t k = 0; k < (*lists)[d].size(); ++k)
        distances[d].push_back((*lists)[d][k].end - (*lists)[first][k].end);
  }
  std::vector<RankStats> out(devices.size());
  for (std::size_t d = 0; d < devices.size(); ++d) {
    out[d].device = devices[d].device;
    const std::uint32_t process = main_process(timeline, devices[d]);
    if (process < profile.processes.size()) out[d].rank = profile.processes[process].rank;
    if (distances[d].empty()) continue;
    const std::int64_t offset = median_of(distances[d]);
    if (std::abs(offset) < kSameClock) continue;
    out[d].clock_offset_ns = static_cast<double>(offset);
    limits.push_back(fmt::format(
        "the clock of {} is about {} {} that of {}, estimated from the ends of "
        "collectives. Do not compare times of these devices directly. Begins of "
        "collectives are compared after this correction",
        device_label(profile, devices[d].device, out[d].rank),
        format_ns(std::abs(static_cast<double>(offset))), offset > 0 ? "ahead of" : "behind",
        device_label(profile, devices[0].device, out[0].rank)));
  }

  for (const auto* lists : usable) {
    std::size_t count = 0;
    for (const Collectives& list : *lists) count = std::max(count, list.size());
    for (std::size_t k = 0; k < count; ++k) {
      const auto begin = [&](std::size_t d) {
        return (*lists)[d][k].begin - static_cast<std::int64_t>(out[d].clock_offset_ns);
      };
      std::int64_t earliest = std::numeric_limits<std::int64_t>::max(), latest = 0;
      std::size_t last = 0;
      bool any = false;
      for (std::size_t d = 0; d < devices.size(); ++d) {
        if ((*lists)[d].empty()) continue;
        earliest = std::min(earliest, begin(d));
        if (!any || begin(d) > latest) {
          latest = begin(d);
          last = d;
        }
        any = true;
      }
      for (std::size_t d = 0; d < devices.size(); ++d) {
        if ((*lists)[d].empty()) continue;
        out[d].collectives += 1;
        out[d].late_ns += static_cast<double>(begin(d) - earliest);
      }
      if (latest > earliest) out[last].last += 1;
    }
  }
  for (RankStats& rank : out)
    if (rank.collectives > 0) rank.late_ns /= rank.collectives;
  std::erase_if(out, [](const RankStats& rank) { return rank.collectives == 0; });
  return out;
}

}  // namespace purlin::analyze
