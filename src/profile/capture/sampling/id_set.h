// SPDX-License-Identifier: Apache-2.0
// IdSet: which correlation IDs were seen, one bit for each. A graph replay has one ID and many
// records, so the launch counter asks for each record whether its ID is new.
//
// Owned by the LaunchCounter. Thread-safety: none. Memory is bounded: beyond kMaxChunks · 64 IDs
// the set is full, and no further ID counts as new.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace purlin::profile::capture {

class IdSet {
 public:
  // Whether the ID is new. False for every new ID of another chunk when the set is full.
  bool insert(std::int64_t id) {
    const std::int64_t chunk = id >> 6;
    if (chunk != chunk_ || bits_ == nullptr) {
      if (chunks_.size() >= kMaxChunks) {
        full_ = true;
        return false;
      }
      chunk_ = chunk;
      bits_ = &chunks_[chunk];  // its address stays when other chunks are added
    }
    const std::uint64_t bit = std::uint64_t{1} << (id & 63);
    const bool known = (*bits_ & bit) != 0;
    *bits_ |= bit;
    return !known;
  }
  bool full() const { return full_; }
  // How many of its IDs are in (after, last]. Looks at all chunks.
  double count(std::int64_t after, std::int64_t last) const {
    double result = 0;
    for (const auto& [chunk, bits] : chunks_) {
      const std::int64_t first = chunk << 6;
      if (first + 63 <= after || first > last) continue;
      for (std::int64_t bit = 0; bit < 64; ++bit)
        if ((bits >> bit & 1) != 0 && first + bit > after && first + bit <= last) result += 1;
    }
    return result;
  }
  void clear() {
    chunks_.clear();
    bits_ = nullptr;
    full_ = false;
  }

 private:
  static constexpr std::size_t kMaxChunks = 65'536;
  std::unordered_map<std::int64_t, std::uint64_t> chunks_;
  std::int64_t chunk_ = -1;        // the last one
  std::uint64_t* bits_ = nullptr;  // its bits
  bool full_ = false;
};

}  // namespace purlin::profile::capture
