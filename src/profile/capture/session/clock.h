// SPDX-License-Identifier: Apache-2.0
// The two clocks of a capture, in nanoseconds: the wall clock, for times in CUPTI's records and in
// profiles, and the monotonic clock, for windows and periods. [MT]; cannot fail.
#pragma once

#include <cstdint>
#include <ctime>

namespace purlin::profile::capture {

inline std::int64_t clock_ns(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline std::int64_t wall_ns() { return clock_ns(CLOCK_REALTIME); }
inline std::int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

}  // namespace purlin::profile::capture
