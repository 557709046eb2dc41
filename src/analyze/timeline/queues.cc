// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/queues.h"

#include <cmath>

namespace purlin::analyze {
namespace {

// Where launches block on NVIDIA's driver: 1,022 to 1,024 by observation.
constexpr int kFullDepth = 1022;

// Nearest rank; reorders.
double quantile(std::vector<std::uint32_t>& values, double q) {
  if (values.empty()) return 0;
  const auto rank =
      static_cast<std::size_t>(std::max(1.0, std::ceil(q * static_cast<double>(values.size()))));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::uint32_t clamped(std::int64_t ns) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ns, 0, 0xFFFFFFFF));
}

}  // namespace

QueueStats measure_queue(const Timeline& timeline, const StreamWork& stream, Interval window) {
  QueueStats out;
  out.device = stream.device;
  out.process = stream.process;
  out.stream = stream.stream;
  std::vector<std::int64_t> entered, left;
  std::uint32_t last_call = kNone;
  for (const std::uint32_t index : stream.activities) {
    const Activity& activity = timeline.activities[index];
    if (activity.call >= timeline.calls.size() || activity.call == last_call) continue;
    last_call = activity.call;
    const std::int64_t begin = begin_of(activity);
    const Interval queued =
        clip({std::min(begin_of(timeline.calls[activity.call]), begin), begin}, window);
    if (queued.length() <= 0) continue;
    entered.push_back(queued.begin);
    left.push_back(queued.end);
  }
  // Launched on several threads they may enter out of order; clocks may disagree a little.
  if (!std::is_sorted(entered.begin(), entered.end())) std::sort(entered.begin(), entered.end());
  if (!std::is_sorted(left.begin(), left.end())) std::sort(left.begin(), left.end());
  double area = 0;  // depth x time
  int depth = 0;
  std::int64_t at = window.begin;
  const auto advance = [&](std::int64_t to) {
    area += static_cast<double>(depth) * static_cast<double>(to - at);
    if (depth >= kFullDepth) out.full_ns += to - at;
    at = to;
  };
  for (std::size_t in = 0, gone = 0; gone < left.size();) {
    if (in < entered.size() && entered[in] < left[gone]) {
      advance(entered[in++]);
      out.max_depth = std::max(out.max_depth, ++depth);
    } else {
      advance(left[gone++]);
      --depth;
    }
  }
  if (window.length() > 0) out.mean_depth = area / static_cast<double>(window.length());
  return out;
}

LaunchStats measure_launches(const Timeline& timeline, const std::map<int, Interval>& windows) {
  LaunchStats out;
  std::vector<std::uint32_t> calls, latencies;
  for (const Activity& activity : timeline.activities) {
    if (activity.kind != ActivityKind::kKernel || activity.call >= timeline.calls.size()) continue;
    const Call& call = timeline.calls[activity.call];
    if (call.kind != CallKind::kLaunch) continue;
    const Interval work = interval_of(activity), launch = interval_of(call);
    const auto window = windows.find(activity.device);
    if (window == windows.end() || work.begin < window->second.begin ||
        work.begin >= window->second.end)
      continue;
    latencies.push_back(clamped(work.begin - launch.end));
    if (launch.length() <= 0) continue;  // only its time is known
    calls.push_back(clamped(launch.length()));
    if (work.length() < launch.length()) {
      out.tiny += 1;
      out.tiny_ns += static_cast<double>(work.length());
    }
  }
  out.launches = static_cast<double>(latencies.size());
  out.call_p50_ns = quantile(calls, 0.50);
  out.latency_p50_ns = quantile(latencies, 0.50);
  out.latency_p95_ns = quantile(latencies, 0.95);
  return out;
}

}  // namespace purlin::analyze
