// SPDX-License-Identifier: Apache-2.0
// parallel_for: calls job(worker, index) for each index, from `workers` threads that take the next
// index when they are done with one. The first failure, by index, is returned; the rest of the
// indices is then skipped. Jobs must not throw. One worker runs in the caller's thread.
#pragma once

#include "base/status.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace purlin::profile {

template <class Job>
Status parallel_for(std::size_t count, std::size_t workers, const Job& job) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  Status failure;
  std::size_t failed_at = count;
  const auto work = [&](std::size_t worker) {
    for (std::size_t i = next++; i < count; i = next++) {
      Status status = job(worker, i);
      if (status.is_ok()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      if (i < failed_at) failed_at = i, failure = std::move(status);
      next = count;
    }
  };
  std::vector<std::thread> threads;
  try {
    for (std::size_t worker = 1; worker < std::min(workers, count); ++worker)
      threads.emplace_back(work, worker);
  } catch (const std::system_error&) {  // no more threads are available: fewer do the work
  }
  work(0);
  for (std::thread& thread : threads) thread.join();
  return failure;
}

}  // namespace purlin::profile
