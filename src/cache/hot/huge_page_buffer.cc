// SPDX-License-Identifier: Apache-2.0
#include "cache/hot/huge_page_buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace purlin::cache {

HugePageBuffer::HugePageBuffer(std::size_t bytes) {
  const std::size_t unit = bytes >= kHugePage ? kHugePage : kLine;
  bytes_ = (bytes + unit - 1) / unit * unit;
  data_ = static_cast<char*>(std::aligned_alloc(unit, bytes_));
  if (data_ == nullptr) throw std::bad_alloc();
  if (unit == kHugePage) ::madvise(data_, bytes_, MADV_HUGEPAGE);  // refused: ordinary pages
  std::memset(data_, 0, bytes_);
}

HugePageBuffer::~HugePageBuffer() { std::free(data_); }

}  // namespace purlin::cache
