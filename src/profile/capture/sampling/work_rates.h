// SPDX-License-Identifier: Apache-2.0
// WorkRates: how many launches and nodes of graphs a program begins in a second while it is at
// work: what a launch finds on the average, each 20 ms counting by what began in it. A head of half
// a second comes after seconds of starting; over all of that time the rate would be a fraction of
// what it is. Records may come in any order, as late as they like, from several threads.
//
// Only of time that is recorded without a break. Of the last 512 such 20 ms in which something
// began. Thread-safety: none. Pure arithmetic.
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
