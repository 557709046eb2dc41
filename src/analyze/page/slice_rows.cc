// SPDX-License-Identifier: Apache-2.0
#include "analyze/page/slice_rows.h"

#include <algorithm>

namespace purlin::analyze {

void SliceRows::add(const PageSlice& slice) {
  std::size_t row = ends_.size();
  while (row > 0 && ends_[row - 1] <= slice.begin) --row;
  row = std::min(row, kMostRows - 1);
  if (row == ends_.size()) {
    ends_.push_back(0);
    rows_.emplace_back();
  }
  ends_[row] = std::max(ends_[row], slice.end);
  rows_[row].push_back(slice);
  ++size_;
}

}  // namespace purlin::analyze
