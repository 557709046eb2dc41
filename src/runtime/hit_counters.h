// SPDX-License-Identifier: Apache-2.0
// HitCounters: how often each entry of an op was found. A fixed table of counters, claimed by the
// first hit of an entry; entries beyond it are counted together.
//
// [MT], wait-free, no allocation. A thread notes its first lookups one by one and then about one in
// kSampled, at random, for all of those in between: lookups that are asked in a fixed rhythm must
// not all fall on one op.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace purlin::runtime {

// A thread's own: when the next of its lookups is noted.
struct LookupSampling {
  std::uint32_t left = 1, gap = 1, random = 0x9E3779B9u;
};
// One variable, as each takes a call to be found in a shared library. (Not initial-exec: a program
// that loads libpurlin late may have no room left for that.)
inline thread_local LookupSampling lookup_sampling;

// How many lookups the one that is noted stands for.
inline std::uint64_t sampled_weight(LookupSampling& s) noexcept {
  constexpr std::uint32_t kSampled = 64;
  const std::uint64_t weight = s.gap;
  s.gap = s.gap < kSampled ? s.gap * 2 : kSampled;
  s.random ^= s.random << 13, s.random ^= s.random >> 17, s.random ^= s.random << 5;
  s.left = s.gap < kSampled ? s.gap : 1 + s.random % (2 * kSampled - 1);  // kSampled on average
  return weight;
}

// How many lookups the one that is being made stands for; 0 for most. Of the calling thread.
inline std::uint64_t sample_weight() noexcept {
  LookupSampling& sampling = lookup_sampling;
  return --sampling.left != 0 ? 0 : sampled_weight(sampling);
}

template <class Entry>
class HitCounters {
 public:
  static constexpr std::size_t kSlots = 4096;  // a power of two

  // True when this entry was noted for the first time.
  bool note(const Entry* entry, std::uint64_t weight) noexcept {
    std::size_t at = (reinterpret_cast<std::uintptr_t>(entry) * 0x9E3779B97F4A7C15u) >> 52;
    for (std::size_t probes = 0; probes < 8; ++probes, at = (at + 1) % kSlots) {
      const Entry* held = slots_[at].entry.load(std::memory_order_acquire);
      const bool claimed =
          held == nullptr && slots_[at].entry.compare_exchange_strong(
                                 held, entry, std::memory_order_acq_rel, std::memory_order_acquire);
      if (!claimed && held != entry) continue;
      slots_[at].count.fetch_add(weight, std::memory_order_relaxed);
      return claimed;
    }
    others_.fetch_add(weight, std::memory_order_relaxed);
    return false;
  }

  // visit(entry, count) for what was noted since the last time.
  template <class Visit>
  void take(Visit visit) {
    for (Slot& slot : slots_)
      if (const std::uint64_t count = slot.count.exchange(0, std::memory_order_relaxed); count > 0)
        visit(*slot.entry.load(std::memory_order_acquire), count);
  }
  std::uint64_t others() const { return others_.load(std::memory_order_relaxed); }

 private:
  struct Slot {
    std::atomic<const Entry*> entry{nullptr};
    std::atomic<std::uint64_t> count{0};
  };
  std::array<Slot, kSlots> slots_;
  std::atomic<std::uint64_t> others_{0};
};

}  // namespace purlin::runtime
