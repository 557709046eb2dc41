// SPDX-License-Identifier: Apache-2.0
// TopK: finds the frequent keys of an endless stream, in constant memory (space-saving; Metwally,
// Agrawal, El Abbadi 2005). A key that is not held takes the place of the rarest and inherits its
// count as a possible error. So count - error <= true count <= count. Every key seen more than
// total / capacity times is held.
//
// add() allocates nothing. One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::runtime {

template <class Key>
class TopK {
 public:
  struct Counter {
    Key key;
    std::uint64_t count = 0, error = 0;
  };

  explicit TopK(std::size_t capacity) : capacity_(capacity) {
    counters_.reserve(capacity);
    hashes_.reserve(capacity);
  }

  void add(const Key& key, std::uint64_t hash, std::uint64_t weight) {
    total_ += weight;
    // A scan over a few hundred hashes that lie side by side takes less than a pointer chase.
    for (std::size_t i = 0; i < hashes_.size(); ++i)
      if (hashes_[i] == hash && counters_[i].key == key) {
        counters_[i].count += weight;
        return;
      }
    if (counters_.size() < capacity_) {
      counters_.push_back({key, weight, 0});
      hashes_.push_back(hash);
      return;
    }
    const auto rarest =
        std::min_element(counters_.begin(), counters_.end(),
                         [](const Counter& a, const Counter& b) { return a.count < b.count; });
    hashes_[static_cast<std::size_t>(rarest - counters_.begin())] = hash;
    *rarest = {key, rarest->count + weight, rarest->count};
  }

  const std::vector<Counter>& counters() const { return counters_; }
  std::uint64_t total() const { return total_; }
  void clear() {
    counters_.clear();
    hashes_.clear();
    total_ = 0;
  }

 private:
  const std::size_t capacity_;
  std::vector<Counter> counters_;
  std::vector<std::uint64_t> hashes_;  // of the counter at the same index
  std::uint64_t total_ = 0;
};

}  // namespace purlin::runtime
