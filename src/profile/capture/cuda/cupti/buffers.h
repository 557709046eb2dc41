// SPDX-License-Identifier: Apache-2.0
// Buffers lent to CUPTI. It asks for one on each thread that launches work, so buffers are kept and
// lent again. The memory of unused buffers returns to the system, but not their addresses: a late
// write into one does no harm. owns() distinguishes them from another client's buffers. They come
// from the C library's allocator: a client that took CUPTI over unseen gets them and frees them as
// its own.
//
// [MT] every method. CUPTI holds one per launching thread and a few more in flight.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace purlin::profile::capture::cuda {

class Buffers {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  static constexpr std::size_t kAlignment = 8;
  static constexpr std::size_t kKept = 4;  // kept even if unused

  Buffers() = default;
  // In a process that is captured they are never destroyed; a test's leave nothing behind.
  ~Buffers() {
    for (const auto* buffers : {&free_, &released_})
      for (std::uint8_t* buffer : *buffers) std::free(buffer);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Null when memory ran out.
  std::uint8_t* lend() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      std::uint8_t* buffer = free_.back();
      free_.pop_back();
      least_free_ = std::min(least_free_, free_.size());
      return buffer;
    }
    if (!released_.empty()) {
      std::uint8_t* buffer = released_.back();
      released_.pop_back();
      return buffer;
    }
    all_.reserve(all_.size() + 1);
    free_.reserve(all_.size() + 1);  // giving back allocates nothing
    auto* buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBytes));
    if (buffer == nullptr) return nullptr;
    all_.insert(std::lower_bound(all_.begin(), all_.end(), buffer), buffer);
    return buffer;
  }
  bool owns(const std::uint8_t* buffer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::binary_search(all_.begin(), all_.end(), buffer);
  }
  std::size_t bytes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return (all_.size() - released_.size()) * kBytes;
  }
  std::size_t lent() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return all_.size() - free_.size() - released_.size();
  }
  void give_back(std::uint8_t* buffer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(buffer);
  }
  // Releases the buffers that were free all the time since the last call.
  void release_unused() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t kept = all_.size() - released_.size();
    const std::size_t unused = std::min(least_free_, kept - std::min(kept, kKept));
    const auto end = free_.begin() + static_cast<std::ptrdiff_t>(unused);
    released_.insert(released_.end(), free_.begin(), end);
    free_.erase(free_.begin(), end);
    least_free_ = free_.size();
    // Not after the lock, under which they may be lent again.
    for (auto buffer = released_.end() - static_cast<std::ptrdiff_t>(unused);
         buffer != released_.end(); ++buffer)
      forget(*buffer);
  }

 private:
  // Only the whole pages in it: the allocator owns other data in the first and last page.
  static void forget(std::uint8_t* buffer) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto from = (reinterpret_cast<std::uintptr_t>(buffer) + page - 1) / page * page;
    const auto to = (reinterpret_cast<std::uintptr_t>(buffer) + kBytes) / page * page;
    (void)::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
  }

  std::mutex mutex_;
  std::vector<std::uint8_t*> all_;       // sorted
  std::vector<std::uint8_t*> free_;      // the last is lent first
  std::vector<std::uint8_t*> released_;  // of those without memory
  std::size_t least_free_ = 0;           // of free_, since release_unused()
};

}  // namespace purlin::profile::capture::cuda
