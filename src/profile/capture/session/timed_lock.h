// SPDX-License-Identifier: Apache-2.0
// A lock that is waited for two seconds at most. What holds it may be waiting, inside CUPTI or the
// driver, for the very thread that wants it: then going on without it is better than a hang.
#pragma once

#include <chrono>
#include <mutex>

namespace purlin::profile::capture {

// False if another thread held it all the while.
inline bool lock_in_time(std::unique_lock<std::timed_mutex>& lock) {
  constexpr std::chrono::seconds kLongestWait(2);
#ifdef __SANITIZE_THREAD__  // g++ 12's knows no waiting by the steady clock
  return lock.try_lock_until(std::chrono::system_clock::now() + kLongestWait);
#else
  return lock.try_lock_for(kLongestWait);
#endif
}

}  // namespace purlin::profile::capture
