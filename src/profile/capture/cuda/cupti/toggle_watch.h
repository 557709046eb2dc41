// SPDX-License-Identifier: Apache-2.0
// ToggleWatch: detects that CUPTI has lost track of work, by the processor time that switching off
// takes. A call that only waits, as for a lock on an overloaded machine, is not stuck. CUPTI 13.0
// sometimes does (bench/results/capture_faults_h200.md). From then on it never reuses its device
// buffers. For each 100,000 recorded launches it keeps 3 MB of host memory and of device memory. In
// programs whose threads start and end, it walks through all of them at each switch. Only CUPTI's
// shutdown ends this, which breaks programs with graphs. Without recording it does not grow. In
// programs whose threads stay the switches take the same time, and this detects nothing.
//
// Owned by the CollectorScheduler. Thread-safety: none. The minimum of several times counts,
// because each of them may have been interrupted.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace purlin::profile::capture::cuda {

class ToggleWatch {
 public:
  static constexpr std::size_t kRecent = 8;
  // 10 to 20 us are usual; with 200,000 kept launches it takes this long.
  static constexpr std::int64_t kLongNs = 400'000;
  static constexpr std::int64_t kTimes = 10;  // as long as the shortest ever

  // Called after each window's close, with the thread's processor time. True if CUPTI is stuck.
  bool closed(std::int64_t took_ns) {
    recent_[count_++ % kRecent] = took_ns;
    least_ns_ = count_ == 1 ? took_ns : std::min(least_ns_, took_ns);
    if (count_ < kRecent) return false;
    const std::int64_t least = *std::min_element(recent_.begin(), recent_.end());
    return least >= kLongNs && least >= kTimes * least_ns_;
  }

 private:
  std::array<std::int64_t, kRecent> recent_ = {};
  std::size_t count_ = 0;
  std::int64_t least_ns_ = 0;
};

}  // namespace purlin::profile::capture::cuda
