// SPDX-License-Identifier: Apache-2.0
// FlushTimes: plans the times at which CUPTI is asked for its records. Flushes and switches of
// kinds keep kApartNs between them. In the middle of a gap most of a window's records come back.
// The distance is a precaution: CUPTI 13.0 crashes when memcpy kinds are switched, near a flush or
// not (bench/results/cupti_windows_crash.md, activity/tier.h).
//
// It has no clock: the caller passes the (monotonic) time of each flush and switch. Owned by the
// CollectorScheduler. Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace purlin::profile::capture::cuda {

class FlushTimes {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kApartNs = 5'000'000;
  // Before a switch: the recorded work has ended by then, and the distance is large enough.
  static constexpr std::int64_t kAheadNs = 20'000'000;

  void flushed(std::int64_t now_ns) { flushed_ns_ = std::max(flushed_ns_, now_ns); }
  void switched(std::int64_t now_ns) { switched_ns_ = std::max(switched_ns_, now_ns); }

  // `next_ns`: of the next switch, kNever if none is planned.
  bool may_flush(std::int64_t now_ns, std::int64_t next_ns) const {
    return now_ns - kApartNs >= switched_ns_ && next_ns - kApartNs >= now_ns;
  }
  // The middle, or later, between the last switch and that one; kNever if the gap is too short.
  std::int64_t best_flush_ns(std::int64_t next_ns) const {
    const std::int64_t gap = next_ns - switched_ns_;
    if (gap < 2 * kApartNs) return kNever;
    return next_ns - std::min(gap / 2, kAheadNs);
  }
  std::int64_t switch_from_ns() const { return flushed_ns_ + kApartNs; }

 private:
  std::int64_t flushed_ns_ = 0, switched_ns_ = 0;
};

}  // namespace purlin::profile::capture::cuda
