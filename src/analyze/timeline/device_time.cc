// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/device_time.h"

#include "analyze/timeline/idle.h"
#include "analyze/timeline/phases.h"
#include "base/text.h"

#include <map>
#include <set>
#include <unordered_map>

namespace purlin::analyze {
namespace {

constexpr std::size_t kLongestGaps = 100;
constexpr std::int64_t kBuckets = 200;

// Keeps the longest gaps seen, and how each was attributed.
class LongestGaps {
 public:
  void add(const Segment& gap, const IdleAttribution::Causes& causes, bool one_off) {
    const std::int64_t length = gap.interval.length();
    if (kept_.size() == kLongestGaps && length <= kept_.begin()->first) return;
    kept_.emplace(length, Kept{gap, causes, one_off});
    if (kept_.size() > kLongestGaps) kept_.erase(kept_.begin());
  }
  void describe(const IdleAttribution& idle, int device, std::vector<Gap>& out) const {
    for (const auto& [length, gap] : kept_) {
      out.push_back(idle.describe(gap.segment, gap.causes, device));
      out.back().one_off = gap.one_off;
    }
  }

 private:
  struct Kept {
    Segment segment;
    IdleAttribution::Causes causes;
    bool one_off = false;
  };
  std::multimap<std::int64_t, Kept> kept_;
};

// Which of the overview's shares a moment belongs to.
std::size_t share_of(unsigned mask) {
  if ((mask & kCompute) != 0) return 0;
  if ((mask & kCommunicating) != 0) return 1;
  return mask != 0 ? 2 : 3;
}

class OverviewBuckets {
 public:
  OverviewBuckets(TimelineAnalysis::Overview& overview, Interval window) : overview_(overview) {
    overview.begin_ns = window.begin;
    overview.bucket_ns = std::max<std::int64_t>(1, (window.length() + kBuckets - 1) / kBuckets);
    overview.shares.resize(
        static_cast<std::size_t>((window.length() + overview.bucket_ns - 1) / overview.bucket_ns));
    sums_.resize(overview.shares.size());
    end_ = window.end;
  }
  void add(Interval interval, unsigned mask) {
    while (interval.length() > 0) {
      const std::int64_t bucket = (interval.begin - overview_.begin_ns) / overview_.bucket_ns;
      const std::int64_t end =
          std::min(interval.end, overview_.begin_ns + (bucket + 1) * overview_.bucket_ns);
      sums_[static_cast<std::size_t>(bucket)][share_of(mask)] += end - interval.begin;
      interval.begin = end;
    }
  }
  void finish() {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const std::int64_t begin =
          overview_.begin_ns + static_cast<std::int64_t>(i) * overview_.bucket_ns;
      const auto length = static_cast<double>(std::min(end_, begin + overview_.bucket_ns) - begin);
      for (std::size_t c = 0; c < 4; ++c)
        overview_.shares[i][c] = static_cast<float>(static_cast<double>(sums_[i][c]) / length);
    }
  }

 private:
  TimelineAnalysis::Overview& overview_;
  std::vector<std::array<std::int64_t, 4>> sums_;
  std::int64_t end_ = 0;
};

// What does not depend on the window.
void measure_all_work(const Timeline& timeline, const DeviceWork& work, DeviceTime& out) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> streams;
  std::pair<std::uint32_t, std::uint32_t> last_stream = {kNone, kNone};
  std::int64_t until = std::numeric_limits<std::int64_t>::min();
  for (std::size_t i = work.first; i < work.last; ++i) {
    const Activity& activity = timeline.activities[i];
    const std::pair<std::uint32_t, std::uint32_t> stream = {activity.process, activity.stream};
    if (stream != last_stream) streams.insert(last_stream = stream);
    const std::int64_t end = end_of(activity);
    if (activity.kind == ActivityKind::kKernel)
      out.kernel_sum_ns += static_cast<double>(end - begin_of(activity));
    const std::int64_t begin =
        i == work.first ? begin_of(activity) : std::max(begin_of(activity), until);
    out.work_busy_ns += std::max<std::int64_t>(0, end - begin);
    until = std::max(until, end);
  }
  out.streams = static_cast<int>(streams.size());
  if (work.first == work.last) return;
  out.work_begin_ns = begin_of(timeline.activities[work.first]);
  out.work_span_ns = until - out.work_begin_ns;
}

// Whether `interval` begins inside of one of `intervals`, which are in order and disjoint.
bool inside_any(const std::vector<Interval>& intervals, Interval interval) {
  const auto after = std::partition_point(
      intervals.begin(), intervals.end(),
      [&](const Interval& candidate) { return candidate.end <= interval.begin; });
  return after != intervals.end() && after->begin <= interval.begin;
}

IdleInterval idle_interval(Interval gap, const IdleAttribution::Causes& causes, int device) {
  const auto most = std::max_element(causes.begin(), causes.end());
  const auto length = static_cast<double>(std::max<std::int64_t>(gap.length(), 1));
  return {device, static_cast<IdleCause>(most - causes.begin()),
          static_cast<float>(static_cast<double>(*most) / length), gap.begin, gap.length()};
}

}  // namespace

std::string device_label(const Profile& profile, int device, int rank) {
  const std::vector<DeviceInfo>& devices = profile.environment.devices;
  const auto index = static_cast<std::size_t>(device);
  const std::string name = device >= 0 && index < devices.size() && !devices[index].id.empty()
                               ? devices[index].id
                               : fmt::format("device {}", device);
  return rank >= 0 ? fmt::format("rank {} ({})", rank, name) : name;
}

std::uint32_t main_process(const Timeline& timeline, const DeviceWork& work) {
  std::unordered_map<std::uint32_t, std::size_t> counts;
  std::uint32_t most = 0;
  std::size_t max_count = 0;
  for (std::size_t i = work.first; i < work.last; ++i) {
    const std::uint32_t process = timeline.activities[i].process;
    const std::size_t count = ++counts[process];
    if (count > max_count) {
      most = process;
      max_count = count;
    }
  }
  return most;
}

DeviceTime measure_device(const Profile& profile, const DeviceWork& work,
                          const std::vector<bool>& communication, const HostFacts& host,
                          Interval window, const std::vector<Interval>& others,
                          const std::vector<Interval>& one_off, std::vector<Gap>& gaps,
                          std::vector<IdleInterval>& all_idle,
                          TimelineAnalysis::Overview& overview) {
  const Timeline& timeline = profile.timeline;
  DeviceTime out;
  out.device = overview.device = work.device;
  out.begin_ns = window.begin;
  out.window_ns = window.length();
  measure_all_work(timeline, work, out);
  for (std::size_t i = work.first; i < work.last; ++i) {
    const Interval interval = interval_of(timeline.activities[i]);
    if (interval.begin >= window.end) break;
    if (interval.end > window.begin) out.activities += 1;
  }

  IdleAttribution idle(profile, host, main_process(timeline, work));
  LongestGaps longest;
  OverviewBuckets buckets(overview, window);
  std::array<std::int64_t, kMasks> time = {};  // by what was under way
  const auto look_at = [&](const Segment& segment) {
    time[segment.mask] += segment.interval.length();
    buckets.add(segment.interval, segment.mask);
    if (segment.mask != 0) return;
    const IdleAttribution::Causes causes = idle.attribute(segment);
    // The recording tool's own gaps have a category, and a baseline without them.
    const std::int64_t of_profiler = causes[static_cast<std::size_t>(IdleCause::kProfiler)];
    const bool left_out =
        2 * of_profiler < segment.interval.length() && inside_any(one_off, segment.interval);
    if (left_out) {
      out.one_off_ns += segment.interval.length();
      ++out.one_off_gaps;
    } else {
      for (std::size_t c = 0; c < kIdleCauses; ++c) out.idle_ns[c] += causes[c];
    }
    longest.add(segment, causes, left_out);
    all_idle.push_back(idle_interval(segment.interval, causes, work.device));
  };
  for (const Interval& other : others) {
    sweep_device(timeline, work, communication, other,
                 [&](const Segment& segment) { buckets.add(segment.interval, segment.mask); });
    out.other_work_ns += other.length();
    ++out.other_works;
  }
  for (const Interval& part : parts_of(window, others)) {
    sweep_device(timeline, work, communication, part, look_at);
    out.parts.emplace_back(part.begin, part.end);
  }
  out.span_ns = out.window_ns - out.one_off_ns - out.other_work_ns;
  buckets.finish();
  longest.describe(idle, work.device, gaps);

  for (unsigned mask = 1; mask < kMasks; ++mask) {
    const bool compute = (mask & kCompute) != 0, communicates = (mask & kCommunicating) != 0,
               copies = (mask & kAnyCopy) != 0;
    out.busy_ns += time[mask];
    if (compute || communicates) out.kernel_ns += time[mask];
    if (compute) out.compute_ns += time[mask];
    if (communicates) out.communication_ns += time[mask];
    if (copies) out.copy_ns += time[mask];
    if (compute && copies) out.compute_and_copy_ns += time[mask];
    if (compute && communicates) out.compute_and_communication_ns += time[mask];
    if (communicates && !compute) out.exposed_communication_ns += time[mask];
    if (copies && !compute && !communicates) out.exposed_copy_ns += time[mask];
  }
  return out;
}

}  // namespace purlin::analyze
