// SPDX-License-Identifier: Apache-2.0
// ActiveTime: how much of the time a program's work was begun in, to 20 ms: what its launches are
// to be divided by for the rate that it has while it is at work. A head of half a second comes
// after seconds of starting; the whole time between would make that rate a fraction of what it is.
//
// Thread-safety: none. Pure arithmetic; bounded: 60 seconds are remembered.
#pragma once

#include <cstdint>
#include <set>

namespace purlin::profile::capture {

class ActiveTime {
 public:
  // Longer than most steps of a loop, so that what a step leaves the device to do counts, too.
  static constexpr std::int64_t kSlotNs = 20'000'000;
  static constexpr std::int64_t slot_of(std::int64_t start_ns) { return start_ns / kSlotNs; }

  // Something began in that slot; in any order.
  void add(std::int64_t slot);
  // Of slots since the last call, in ns; one that was counted before is not again.
  std::int64_t take();

 private:
  static constexpr std::size_t kMost = 3000;

  std::set<std::int64_t> slots_;  // of late
  std::int64_t fresh_ = 0;
};

}  // namespace purlin::profile::capture
