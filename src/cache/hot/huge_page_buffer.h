// SPDX-License-Identifier: Apache-2.0
// LineMemory: zeroed memory that begins at a line of the processor's caches and, where it fills a
// huge page, lies on huge pages, where the system has them: reads at random places then seldom wait
// for address translation. Owns its memory. Thread-safety: none of its own; it does not change.
#pragma once

#include <cstddef>

namespace purlin::cache {

class LineMemory {
 public:
  static constexpr std::size_t kLine = 64, kHugePage = std::size_t{2} << 20;

  // Rounded up to whole lines, or huge pages. Throws std::bad_alloc.
  explicit LineMemory(std::size_t bytes);
  ~LineMemory();
  LineMemory(const LineMemory&) = delete;
  LineMemory& operator=(const LineMemory&) = delete;

  char* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  char* data_;
};

}  // namespace purlin::cache
