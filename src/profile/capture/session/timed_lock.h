// SPDX-License-Identifier: Apache-2.0
// Waits at most two seconds for a lock. The thread that holds it may itself wait, inside CUPTI or
// the driver, for the thread that calls. Without the limit both would wait forever. The caller goes
// on without the lock. [MT].
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
