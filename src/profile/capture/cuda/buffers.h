// SPDX-License-Identifier: Apache-2.0
// Buffers lent to CUPTI. It asks for one on whatever thread launches work, so they are kept and
// lent again rather than allocated anew. owns() tells them from another client's.
//
// [MT] every method. Never shrinks; CUPTI holds one per launching thread and a few more in flight.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace purlin::profile::capture::cuda {

class Buffers {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;
  static constexpr std::size_t kAlignment = 8;

  Buffers() = default;
  // In a process that is captured they are never destroyed; a test's leave nothing behind.
  ~Buffers() {
    for (std::uint8_t* buffer : free_) std::free(buffer);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Null when memory ran out.
  std::uint8_t* lend() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      std::uint8_t* buffer = free_.back();
      free_.pop_back();
      return buffer;
    }
    auto* buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, kBytes));
    if (buffer == nullptr) return nullptr;
    all_.insert(std::lower_bound(all_.begin(), all_.end(), buffer), buffer);
    free_.reserve(all_.size());
    return buffer;
  }
  bool owns(const std::uint8_t* buffer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::binary_search(all_.begin(), all_.end(), buffer);
  }
  std::size_t bytes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return all_.size() * kBytes;
  }
  std::size_t lent() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return all_.size() - free_.size();
  }
  void give_back(std::uint8_t* buffer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(buffer);
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint8_t*> all_;  // sorted
  std::vector<std::uint8_t*> free_;
};

}  // namespace purlin::profile::capture::cuda
