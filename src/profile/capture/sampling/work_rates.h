// SPDX-License-Identifier: Apache-2.0
// WorkRates: how many launches and nodes of graphs a program begins in a second while it works.
// Time is cut into slots of 20 ms, and each slot counts by what began in it. So idle seconds do not
// lower the rate: a start-up window of half a second may follow seconds without work. Records may
// come in any order, any time later, from several threads.
//
// Only time that is recorded without a break counts, and of it the last 512 slots in which
// something began. Owned by the ActivityAggregator. Thread-safety: none. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

namespace purlin::profile::capture {

class WorkRates {
 public:
  // Longer than most steps of a loop, so that what a step leaves the device to do counts, too.
  static constexpr std::int64_t kSlotNs = 20'000'000;
  static constexpr std::int64_t slot_of(std::int64_t start_ns) { return start_ns / kSlotNs; }

  struct Amounts {
    double launches = 0, nodes = 0;
  };

  void add(std::int64_t slot, const Amounts& begun);
  Amounts per_ns() const;  // zeros: nothing has begun yet

 private:
  static constexpr std::size_t kMax = 512;

  std::unordered_map<std::int64_t, Amounts> slots_;
  std::deque<std::int64_t> order_;  // as they came to be known
};

}  // namespace purlin::profile::capture
