// SPDX-License-Identifier: Apache-2.0
// A machine for tests: host threads, streams and ranks with exact rules. A program runs on it and
// leaves a recorded timeline; run again with other durations, it gives the truth that a replay of
// the first recording must find. Tests only.
#pragma once

#include "analyze/timeline/intervals.h"
#include "analyze/timeline/testing.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

struct MachineRules {
  double device = 1, host = 1;  // factors of every kernel, of every time of the host
  std::map<std::string, double, std::less<>> kernel;  // factors of single kernels
  std::int64_t call_ns = 4'000, latency_ns = 7'000, gap_ns = 1'000, return_ns = 3'000;
  std::size_t queue = 1'000'000;  // launches that a stream holds
};

class Machine {
 public:
  explicit Machine(MachineRules rules = {}, int devices = 1)
      : builder(devices), rules_(std::move(rules)) {
    builder.profile.processes.resize(static_cast<std::size_t>(devices));
  }

  void step(int index) { marks_.emplace_back(index, host(1)); }
  void work(std::int64_t ns, std::uint32_t thread = 1, int rank = 0) {
    host(thread, rank) += scaled(ns, rules_.host);
  }
  // Returns the end of the work.
  std::int64_t launch(std::string_view kernel, std::int64_t ns, std::uint32_t stream = 7,
                      std::uint32_t thread = 1, int rank = 0) {
    return begin_launch(kernel, ns, stream, thread, rank);
  }
  void wait(std::uint32_t thread = 1, int rank = 0) {
    std::int64_t& now = host(thread, rank);
    std::int64_t until = now + scaled(2'000, rules_.host);
    for (const auto& [key, ends] : streams_)
      if (key.first == rank && !ends.empty())
        until = std::max(until, ends.back() + rules_.return_ns);
    builder.call(CallKind::kSync, "cudaDeviceSynchronize", now, until - now, thread,
                 static_cast<std::uint32_t>(rank));
    now = until;
  }
  // What `to` runs next comes after what `from` was given so far.
  void event(std::uint32_t from, std::uint32_t to, bool recorded = true, std::uint32_t thread = 1) {
    if (recorded) {
      call(CallKind::kOther, "cudaEventRecord", thread);
      call(CallKind::kOther, "cudaStreamWaitEvent", thread);
    }
    const auto& ends = streams_[{0, from}];
    if (!ends.empty()) after_[{0, to}] = std::max(after_[{0, to}], ends.back());
  }
  // Thread `to` goes on when `from` has come here.
  void hand_over(std::uint32_t from, std::uint32_t to) {
    host(to, 0) = std::max(host(to), host(from) + scaled(15'000, rules_.host));
  }
  // All ranks together: the transfer begins when the last has come.
  void collective(std::int64_t transfer, std::uint32_t stream = 20) {
    const int ranks = static_cast<int>(builder.profile.processes.size());
    std::vector<std::size_t> made;
    std::int64_t last = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::int64_t end = begin_launch("ncclDevKernel_AllReduce", 0, stream, 1, rank);
      made.push_back(builder.profile.timeline.activities.size() - 1);
      last = std::max(last, end);
    }
    const std::int64_t end = last + scaled(transfer, factor("ncclDevKernel_AllReduce"));
    for (int rank = 0; rank < ranks; ++rank) {
      Activity& activity =
          builder.profile.timeline.activities[made[static_cast<std::size_t>(rank)]];
      activity.duration_ns = end - activity.start_ns;
      streams_[{rank, stream}].back() = end;
    }
  }
  // Steps become ranges; the last one ends with the host.
  const Profile& finish() {
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      const std::int64_t begin = marks_[i].second;
      const std::int64_t end = i + 1 < marks_.size() ? marks_[i + 1].second : host(1);
      builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(marks_[i].first), begin,
                    end - begin);
    }
    for (const Activity& activity : builder.profile.timeline.activities)
      if (activity.kind == ActivityKind::kKernel)
        builder.profile.kernels[activity.row].duration.add(
            static_cast<double>(activity.duration_ns));
    return builder.sorted();
  }
  std::int64_t host(std::uint32_t thread) const {
    const auto found = hosts_.find({0, thread});
    return found != hosts_.end() ? found->second : 0;
  }

  TimelineBuilder builder;

 private:
  static std::int64_t scaled(std::int64_t ns, double by) {
    return static_cast<std::int64_t>(static_cast<double>(ns) * by);
  }
  double factor(std::string_view kernel) const {
    const auto found = rules_.kernel.find(kernel);
    return found != rules_.kernel.end() ? found->second : rules_.device;
  }
  std::int64_t& host(std::uint32_t thread, int rank) { return hosts_[{rank, thread}]; }
  std::uint32_t call(CallKind kind, std::string_view name, std::uint32_t thread, int rank = 0) {
    std::int64_t& now = host(thread, rank);
    const std::int64_t ns = scaled(rules_.call_ns, rules_.host);
    const std::uint32_t made =
        builder.call(kind, name, now, ns, thread, static_cast<std::uint32_t>(rank));
    now += ns;
    return made;
  }
  std::int64_t begin_launch(std::string_view kernel, std::int64_t ns, std::uint32_t stream,
                            std::uint32_t thread, int rank) {
    auto& ends = streams_[{rank, stream}];
    auto& begins = begins_[{rank, stream}];
    const std::uint32_t made = call(CallKind::kLaunch, "cudaLaunchKernel", thread, rank);
    Call& record = builder.profile.timeline.calls[made];
    if (begins.size() >= rules_.queue) {
      const std::int64_t room = begins[begins.size() - rules_.queue];
      if (room > end_of(record)) {
        record.duration_ns = room - record.start_ns;
        host(thread, rank) = room;
      }
    }
    std::int64_t begin = record.start_ns + rules_.latency_ns;
    if (!ends.empty()) begin = std::max(begin, ends.back() + rules_.gap_ns);
    if (const auto event = after_.find({rank, stream}); event != after_.end()) {
      begin = std::max(begin, event->second + rules_.gap_ns);
      after_.erase(event);
    }
    const std::int64_t length = scaled(ns, factor(kernel));
    Activity& activity = builder.kernel(kernel, begin, length, made, stream, rank);
    activity.process = static_cast<std::uint32_t>(rank);
    begins.push_back(begin);
    ends.push_back(begin + length);
    return begin + length;
  }

  MachineRules rules_;
  std::map<std::pair<int, std::uint32_t>, std::int64_t> hosts_, after_;
  std::map<std::pair<int, std::uint32_t>, std::vector<std::int64_t>> streams_, begins_;
  std::vector<std::pair<int, std::int64_t>> marks_;
};

}  // namespace purlin::analyze
