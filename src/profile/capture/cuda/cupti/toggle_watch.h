// SPDX-License-Identifier: Apache-2.0
// ToggleWatch: sees, by how long it takes to switch recording off, that CUPTI has lost track of
// work. CUPTI 13.0 sometimes does (bench/results/capture_faults_h200.md): from then on it uses none
// of its device buffers again, keeps 3 MB of the host's memory and of the device's for each 100,000
// launches it records, and where threads come and go walks through all of them at each switch.
// Nothing but its shutdown, which breaks programs with graphs, undoes that; it goes no further
// where nothing is recorded. In programs whose threads stay the switches stay as they were, and
// this sees nothing.
//
// Owned by the CollectorScheduler. Thread-safety: none. The least of several closings counts, as
// any one of them may have been interrupted.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace purlin::profile::capture::cuda {

class ToggleWatch {
 public:
  static constexpr std::size_t kRecent = 8;
  // 10 to 20 us are usual; this is what 200,000 launches that are kept make of it.
  static constexpr std::int64_t kLongNs = 400'000;
  static constexpr std::int64_t kTimes = 10;  // as long as the shortest ever

  // To be told of each window's closing. Whether CUPTI is stuck.
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
