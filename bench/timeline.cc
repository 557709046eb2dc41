// SPDX-License-Identifier: Apache-2.0
// bench_timeline [ACTIVITIES]: analysis of a large timeline, time and memory, beside the simplest
// way to the same sums.
//
// Makes a training run of ACTIVITIES (default 10 M) kernels, copies and collectives on three
// streams of two devices, each launched by a call, with ops, steps and synchronisation. Analyses it
// all, then computes the unions alone as one would by hand: a list of intervals for each class,
// sorted and merged, overlaps by intersecting lists. Both must agree. Results: one JSON document.
#include "analyze/timeline/timeline.h"

#include "base/json/json.h"
#include "base/random.h"
#include "model/document.h"
#include "model/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

using namespace purlin;

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
// Of this process; one thread does all the work. Says more than wall time on a busy machine.
double cpu_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// VmHWM (peak) or VmRSS (now) of this process.
double memory_mib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::atof(line.c_str() + field.size() + 1) / 1024;
  return 0;
}
// The peak from here on.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

constexpr std::uint32_t kKernelsOfAStep = 1000;

Profile make_profile(std::size_t activities) {
  Profile profile;
  profile.environment.devices.resize(2);
  profile.processes.resize(2);
  for (std::uint32_t i = 0; i < 200; ++i) {
    KernelRow row;
    row.name = i % 20 == 0 ? fmt::format("ncclDevKernel_AllReduce_{}", i)
                           : fmt::format("_ZN5bench6kernelILi{}EEEvPf", i);
    profile.kernels.push_back(row);
  }
  profile.copies.resize(1);
  profile.copies[0].kind = "h2d";
  Timeline& timeline = profile.timeline;
  timeline.names = {"", "cudaLaunchKernel", "cudaStreamSynchronize", "aten::op", "step"};
  timeline.activities.reserve(activities);
  timeline.calls.reserve(activities + activities / kKernelsOfAStep + 2);
  Random random(1);
  for (std::uint16_t device = 0; device < 2; ++device) {
    std::int64_t host = 1'000'000, free[3] = {host, host, host};
    for (std::size_t i = 0; i < activities / 2; ++i) {
      const auto place = static_cast<std::uint32_t>(i % kKernelsOfAStep);
      Call call;
      call.process = device;
      call.thread = 1;
      if (place == 0) {
        Range range;
        range.kind = RangeKind::kStep;
        range.start_ns = host;
        range.name = 4;
        range.process = device;
        range.thread = 1;
        // Its end is known when the next one begins.
        if (!timeline.ranges.empty() && timeline.ranges.back().process == device)
          timeline.ranges.back().duration_ns = host - timeline.ranges.back().start_ns - 1;
        timeline.ranges.push_back(range);
        call.kind = CallKind::kSync;
        call.name = 2;
        call.start_ns = host;
        host = std::max(host, *std::max_element(free, free + 3)) + 5'000;
        call.duration_ns = host - call.start_ns;
        timeline.calls.push_back(call);
      }
      if (place % 10 == 0) {
        Op op;
        op.start_ns = host;
        op.duration_ns = 60'000;
        op.name = 3;
        op.process = device;
        op.thread = 1;
        timeline.ops.push_back(op);
      }
      call.kind = CallKind::kLaunch;
      call.name = 1;
      call.start_ns = host;
      call.duration_ns = 4'000;
      host += 5'000 + static_cast<std::int64_t>(random.below(3'000));
      Activity activity;
      activity.device = device;
      activity.process = device;
      activity.row = place % 200;
      activity.stream = place % 20 == 0 ? 2 : place % 50 == 7 ? 1 : 0;
      if (activity.stream == 1) {
        activity.kind = ActivityKind::kCopy;
        activity.row = 0;
      }
      activity.call = static_cast<std::uint32_t>(timeline.calls.size());
      activity.duration_ns =
          2'000 + static_cast<std::int64_t>(random.below(activity.stream == 2 ? 40'000 : 9'000));
      std::int64_t& until = free[activity.stream];
      activity.start_ns = std::max(until + 800, call.start_ns + 6'000);
      until = activity.start_ns + activity.duration_ns;
      timeline.calls.push_back(call);
      timeline.activities.push_back(activity);
    }
    timeline.ranges.back().duration_ns = host - timeline.ranges.back().start_ns;
  }
  sort_timeline(timeline);
  return profile;
}

using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

std::int64_t merge(Intervals& list) {
  std::sort(list.begin(), list.end());
  Intervals merged;
  std::int64_t total = 0;
  for (const auto& interval : list)
    if (!merged.empty() && interval.first <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, interval.second);
    } else {
      merged.push_back(interval);
    }
  list = std::move(merged);
  for (const auto& [begin, end] : list) total += end - begin;
  return total;
}

std::int64_t overlap(const Intervals& a, const Intervals& b) {
  std::int64_t total = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    total += std::max<std::int64_t>(
        0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    a[i].second < b[j].second ? ++i : ++j;
  }
  return total;
}

struct Sums {
  std::int64_t busy = 0, compute = 0, communication = 0, copy = 0, both = 0;
};

// Of one device, over [begin, end).
Sums by_hand(const Profile& profile, int device, std::int64_t begin, std::int64_t end) {
  Intervals all, compute, communication, copy;
  for (const Activity& activity : profile.timeline.activities) {
    if (activity.device != device) continue;
    const std::pair<std::int64_t, std::int64_t> interval = {
        std::max(begin, activity.start_ns),
        std::min(end, activity.start_ns + activity.duration_ns)};
    if (interval.first >= interval.second) continue;
    all.push_back(interval);
    const bool nccl = activity.kind == ActivityKind::kKernel && activity.row % 20 == 0;
    (activity.kind != ActivityKind::kKernel ? copy
     : nccl                                 ? communication
                                            : compute)
        .push_back(interval);
  }
  Sums sums;
  sums.busy = merge(all);
  sums.compute = merge(compute);
  sums.communication = merge(communication);
  sums.copy = merge(copy);
  sums.both = overlap(compute, communication);
  return sums;
}

}  // namespace

int main(int argc, char** argv) {
  const auto activities =
      static_cast<std::size_t>(argc > 1 ? std::max(10'000L, std::atol(argv[1])) : 10'000'000L);
  const Profile profile = make_profile(activities);
  const Timeline& timeline = profile.timeline;
  forget_peak();
  const double before = memory_mib("VmRSS");
  double begin = now_s(), begin_cpu = cpu_s();
  const analyze::TimelineAnalysis analysis = analyze::analyze_timeline(profile);
  const double analysis_s = now_s() - begin, analysis_cpu_s = cpu_s() - begin_cpu;
  const double analysis_mib = memory_mib("VmHWM") - before;

  forget_peak();
  const double before_hand = memory_mib("VmRSS");
  begin = now_s();
  begin_cpu = cpu_s();
  bool agree = true;
  for (const analyze::DeviceTime& time : analysis.devices) {
    const Sums sums = by_hand(profile, time.device, time.begin_ns, time.begin_ns + time.span_ns);
    agree = agree && sums.busy == time.busy_ns && sums.compute == time.compute_ns &&
            sums.communication == time.communication_ns && sums.copy == time.copy_ns &&
            sums.both == time.compute_and_communication_ns;
  }
  const double hand_s = now_s() - begin, hand_cpu_s = cpu_s() - begin_cpu;
  const double hand_mib = memory_mib("VmHWM") - before_hand;

  Json out = new_document("purlin.bench/1", profile.environment);
  out.set("activities", timeline.activities.size());
  out.set("calls", timeline.calls.size());
  out.set("timeline_mib", before);
  out.set("analysis",
          Json::object({{"s", analysis_s},
                        {"cpu_s", analysis_cpu_s},
                        {"activities_per_cpu_s", static_cast<double>(activities) / analysis_cpu_s},
                        {"memory_mib", analysis_mib},
                        {"steps", analysis.steps.size()},
                        {"sequences", analysis.sequences.size()},
                        {"queues", analysis.queues.size()}}));
  out.set("unions_by_hand",
          Json::object({{"s", hand_s}, {"cpu_s", hand_cpu_s}, {"memory_mib", hand_mib}}));
  out.set("ratio", analysis_cpu_s / hand_cpu_s);
  out.set("agree", agree);
  std::puts(out.dump(2).c_str());
  return agree ? 0 : 1;
}
