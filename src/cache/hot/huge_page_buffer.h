// SPDX-License-Identifier: Apache-2.0
// HugePageBuffer: zeroed memory that begins at a line of the processor's caches.
//
// A buffer that fills a huge page lies on huge pages if the system has them. Reads at random places
// then seldom wait for address translation. Owns its memory. Thread-safety: no locks; the address
// and the size do not change.
#pragma once

#include <cstddef>

namespace purlin::cache {

class HugePageBuffer {
 public:
  static constexpr std::size_t kLine = 64, kHugePage = std::size_t{2} << 20;

  // Rounded up to whole lines, or huge pages. Throws std::bad_alloc.
  explicit HugePageBuffer(std::size_t bytes);
  ~HugePageBuffer();
  HugePageBuffer(const HugePageBuffer&) = delete;
  HugePageBuffer& operator=(const HugePageBuffer&) = delete;

  char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  char* data_;
};

}  // namespace purlin::cache
