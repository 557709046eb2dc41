// SPDX-License-Identifier: Apache-2.0
// CallLog: calls of the program's threads on their way to the recorder. A thread that adds one
// takes no lock and allocates nothing. Bounded: a full log refuses.
//
// Several threads add, one at a time drains. Owned by HostCalls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace purlin::profile::capture {

struct LoggedCall {
  std::uint32_t call = 0;    // a number that the owner gives it
  std::uint32_t thread = 0;  // as the system numbers it
  std::int64_t start_ns = 0, end_ns = 0;
};

class CallLog {
 public:
  static constexpr std::size_t kSlots = 1 << 14;  // a power of two

  CallLog() {
    for (std::size_t i = 0; i < kSlots; ++i) slots_[i].turn.store(i, std::memory_order_relaxed);
  }

  // False: it is full.
  bool add(const LoggedCall& call) {
    std::size_t place = next_.load(std::memory_order_relaxed);
    while (true) {
      Slot& slot = slots_[place % kSlots];
      const std::size_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn == place) {
        if (!next_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) continue;
        slot.call = call;
        slot.turn.store(place + 1, std::memory_order_release);
        return true;
      }
      if (turn < place) return false;
      place = next_.load(std::memory_order_relaxed);
    }
  }

  // Hands over what was added before, in its order.
  template <class Take>
  void drain(Take take) {
    while (true) {
      Slot& slot = slots_[first_ % kSlots];
      if (slot.turn.load(std::memory_order_acquire) != first_ + 1) return;
      take(slot.call);
      slot.turn.store(first_ + kSlots, std::memory_order_release);
      ++first_;
    }
  }

 private:
  struct Slot {
    std::atomic<std::size_t> turn;  // the place that may be written; one more: it is written
    LoggedCall call;
  };
  std::array<Slot, kSlots> slots_;
  std::atomic<std::size_t> next_ = 0;
  std::size_t first_ = 0;
};

}  // namespace purlin::profile::capture
