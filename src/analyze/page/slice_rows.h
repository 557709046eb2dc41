// SPDX-License-Identifier: Apache-2.0
// Slice rows: the slices of a stream or a thread, laid out so that those of a row follow one
// another and what is nested lies below what it is in. One owner, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::analyze {

struct PageSlice {
  std::int64_t begin = 0, end = 0;
  std::uint32_t item = 0;    // what it is, as an index of the document's items
  std::uint32_t record = 0;  // its index in the timeline's activities or calls
};

class SliceRows {
 public:
  // In order of begin; the longer of two that begin together first.
  void add(const PageSlice& slice);
  const std::vector<std::vector<PageSlice>>& rows() const { return rows_; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kMostRows = 128;  // beyond, slices of the last row overlap
  std::vector<std::vector<PageSlice>> rows_;
  std::vector<std::int64_t> ends_;  // of the last slice of each row
  std::size_t size_ = 0;
};

}  // namespace purlin::analyze
