// SPDX-License-Identifier: Apache-2.0
#include "profile/import/impossible_times.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace purlin::profile {
namespace {

bool is_kernel(const Activity& activity) { return activity.kind == ActivityKind::kKernel; }

// Rows whose sums are to follow the timeline.
class RowSums {
 public:
  explicit RowSums(Profile& profile)
      : profile_(profile), kernels_(profile.kernels.size(), 0), copies_(profile.copies.size(), 0) {
    for (const Activity& activity : profile.timeline.activities)
      ++(is_kernel(activity) ? kernels_ : copies_)[activity.row];
  }
  void changed(const Activity& activity) {
    (is_kernel(activity) ? changed_kernels_ : changed_copies_).insert(activity.row);
  }
  // A row that has launches beyond the timeline keeps its sums.
  void renew() {
    std::erase_if(changed_kernels_, [&](std::uint32_t row) {
      return profile_.kernels[row].duration.count() != kernels_[row];
    });
    std::erase_if(changed_copies_, [&](std::uint32_t row) {
      return profile_.copies[row].duration.count() != copies_[row];
    });
    for (const std::uint32_t row : changed_kernels_) profile_.kernels[row].duration = Sketch();
    for (const std::uint32_t row : changed_copies_) {
      profile_.copies[row].duration = Sketch();
      profile_.copies[row].bytes = 0;
    }
    for (const Activity& activity : profile_.timeline.activities) {
      const auto duration = static_cast<double>(activity.duration_ns);
      if (is_kernel(activity) && changed_kernels_.count(activity.row) != 0) {
        add(profile_.kernels[activity.row], activity);
      } else if (!is_kernel(activity) && changed_copies_.count(activity.row) != 0) {
        profile_.copies[activity.row].duration.add(duration);
        profile_.copies[activity.row].bytes += static_cast<double>(activity.bytes);
      }
    }
  }

 private:
  static void add(KernelRow& row, const Activity& activity) {
    const std::int64_t end = activity.start_ns + activity.duration_ns;
    const bool first = row.duration.count() == 0;
    row.first_ns = first ? activity.start_ns : std::min(row.first_ns, activity.start_ns);
    row.last_ns = first ? end : std::max(row.last_ns, end);
    row.duration.add(static_cast<double>(activity.duration_ns));
  }

  Profile& profile_;
  std::vector<double> kernels_, copies_;  // activities of each row
  std::set<std::uint32_t> changed_kernels_, changed_copies_;
};

double drop_far(Profile& profile, RowSums& sums) {
  std::vector<Activity>& activities = profile.timeline.activities;
  std::int64_t first = INT64_MAX, last = INT64_MIN, longest = 0;
  for (const Activity& activity : activities) {
    first = std::min(first, activity.start_ns);
    last = std::max(last, activity.start_ns);
    longest = std::max(longest, activity.duration_ns);
  }
  // Halves, because the ends of a hostile file may be further apart than a number can say.
  if (last / 2 - first / 2 <= kFarthestNs / 2 && longest <= kFarthestNs) return 0;
  std::vector<std::int64_t> starts;
  for (const Activity& activity : activities) starts.push_back(activity.start_ns);
  for (const Call& call : profile.timeline.calls) starts.push_back(call.start_ns);
  const std::int64_t middle = middle_of(starts);
  return static_cast<double>(std::erase_if(activities, [&](const Activity& activity) {
    if (!is_far(activity.start_ns, activity.duration_ns, middle)) return false;
    sums.changed(activity);
    if (is_kernel(activity)) --profile.coverage.launches_seen;
    return true;
  }));
}

bool is_from_graph(const Profile& profile, const Activity& activity) {
  return activity.graph != 0 ||
         (activity.call != kNone &&
          profile.timeline.calls[activity.call].kind == CallKind::kGraphLaunch);
}

// Launches that are in the file twice: except for graphs, a call launches one piece of work.
double drop_doubled(Profile& profile, RowSums& sums) {
  std::vector<Activity>& activities = profile.timeline.activities;
  const auto same = [&](const Activity& a, const Activity& b) {
    return a.call != kNone && a.call == b.call && a.start_ns == b.start_ns &&
           a.duration_ns == b.duration_ns && a.kind == b.kind && a.row == b.row &&
           a.device == b.device && a.stream == b.stream && !is_from_graph(profile, a);
  };
  const std::size_t before = activities.size();
  activities.erase(std::unique(activities.begin(), activities.end(),
                               [&](const Activity& a, const Activity& b) {
                                 if (!same(a, b)) return false;
                                 sums.changed(b);
                                 if (is_kernel(b)) --profile.coverage.launches_seen;
                                 return true;
                               }),
                   activities.end());
  return static_cast<double>(before - activities.size());
}

// Waits for all work of a device, by process. Only of processes with one device: a wait is for the
// device that is current, which no record names.
class DeviceWaits {
 public:
  explicit DeviceWaits(const Profile& profile) : timeline_(profile.timeline) {
    std::map<std::uint32_t, std::set<int>> devices;
    for (const Activity& activity : timeline_.activities)
      devices[activity.process].insert(activity.device);
    for (const Call& call : timeline_.calls)
      if (call.kind == CallKind::kSync && call.duration_ns >= 0 &&
          devices[call.process].size() == 1 && waits_for_all(call))
        waits_[call.process].push_back(&call);
  }
  // When the first wait that began after the launch had returned; the latest time without one.
  std::int64_t end_after(const Activity& activity) const {
    const auto waits = waits_.find(activity.process);
    if (waits == waits_.end() || activity.call == kNone) return INT64_MAX;
    const Call& launch = timeline_.calls[activity.call];
    const auto first = std::partition_point(
        waits->second.begin(), waits->second.end(),
        [&](const Call* wait) { return wait->start_ns < launch.start_ns + launch.duration_ns; });
    return first == waits->second.end() ? INT64_MAX : (*first)->start_ns + (*first)->duration_ns;
  }

 private:
  bool waits_for_all(const Call& call) const {
    if (call.name >= timeline_.names.size()) return false;
    const std::string& name = timeline_.names[call.name];
    return name.find("DeviceSynchronize") != std::string::npos ||
           name.find("CtxSynchronize") != std::string::npos;
  }
  const Timeline& timeline_;
  std::map<std::uint32_t, std::vector<const Call*>> waits_;  // in order of start
};

// The last kernels of a stream have no later one that shows it; the host's wait for them does.
double cut_beyond_waits(Profile& profile, RowSums& sums) {
  constexpr std::int64_t kGross = 10, kClocksDiffer = 1'000'000;  // times; ns
  const DeviceWaits waits(profile);
  double cut = 0;
  for (Activity& kernel : profile.timeline.activities) {
    if (!is_kernel(kernel) || kernel.duration_ns < kClocksDiffer) continue;
    const std::int64_t end = waits.end_after(kernel), possible = end - kernel.start_ns;
    if (end == INT64_MAX || possible <= 0 || kernel.duration_ns / kGross < possible) continue;
    if (kernel.duration_ns - possible < kClocksDiffer) continue;
    kernel.duration_ns = possible;
    sums.changed(kernel);
    ++cut;
  }
  return cut;
}

double cut_overlong(Profile& profile, RowSums& sums) {
  InOrderStreams streams;
  double cut = 0;
  std::vector<Activity>& activities = profile.timeline.activities;
  for (auto kernel = activities.rbegin(); kernel != activities.rend(); ++kernel) {
    if (!is_kernel(*kernel) || is_from_graph(profile, *kernel)) continue;
    const std::uint64_t stream = std::uint64_t{kernel->stream} << 32 |
                                 std::uint64_t{kernel->device} << 16 | (kernel->process & 0xFFFF);
    const std::int64_t possible =
        streams.possible_duration(stream, kernel->start_ns, kernel->duration_ns);
    if (possible == kernel->duration_ns) continue;
    kernel->duration_ns = possible;
    sums.changed(*kernel);
    ++cut;
  }
  return cut;
}

}  // namespace

void keep_possible_times(Profile& profile) {
  RowSums sums(profile);
  const double far = drop_far(profile, sums), doubled = drop_doubled(profile, sums);
  const double overlong = cut_overlong(profile, sums) + cut_beyond_waits(profile, sums);
  if (far + doubled + overlong > 0) sums.renew();
  if (doubled > 0)
    profile.coverage.notes.push_back(
        {"doubled_records", "launches are in the file twice; each counts once", doubled, 0});
  if (far > 0)
    profile.coverage.notes.push_back(
        {"bad_times",
         "kernels and memcpys lie more than a day away from the recording: their times are of no "
         "use, and they were left out",
         far, 0});
  if (overlong > 0)
    profile.coverage.notes.push_back(
        {"overlong_kernels",
         "kernels seem to run on while later ones of their stream begin and end, or after the host "
         "has waited for them. Each counts up to the next start, or to the end of the wait",
         overlong, 0});
}

std::int64_t middle_of(std::vector<std::int64_t>& starts) {
  if (starts.empty()) return 0;
  const auto middle = starts.begin() + static_cast<std::ptrdiff_t>(starts.size() / 2);
  std::nth_element(starts.begin(), middle, starts.end());
  return *middle;
}

std::int64_t InOrderStreams::possible_duration(std::uint64_t stream, std::int64_t start_ns,
                                               std::int64_t duration_ns) {
  constexpr std::int64_t kGross = 10;  // times, where there is no second one behind it
  Later& later = streams_[stream];
  const std::int64_t gap = later.start_ns - start_ns, end_ns = start_ns + duration_ns;
  const bool outlasts_next = later.count > 0 && gap > 0 && end_ns > later.end_ns;
  const bool impossible =
      outlasts_next && (later.count > 1 ? end_ns > later.second_end_ns
                                        : duration_ns / kGross > later.end_ns - start_ns);
  const std::int64_t possible = impossible ? gap : duration_ns;
  later = {start_ns, start_ns + possible, later.end_ns, std::min(later.count + 1, 2)};
  return possible;
}

}  // namespace purlin::profile
