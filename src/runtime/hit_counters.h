// SPDX-License-Identifier: Apache-2.0
// HitCounters: how often each entry of an op was found. A fixed table of counters, claimed by the
// first hit of an entry; entries beyond it are counted together.
//
// [MT], wait-free, no allocation. A lookup does not wait for the memory of its counter: it requests
// the memory and leaves its count to the thread's next sample, or to take(). A thread notes its
// first lookups one by one, and later ones ever more rarely, at last about one in kSampled. The
// noted lookup is random and represents all lookups since the previous one. Lookups in a fixed
// rhythm must not all be counted for one op. So a count of n is known to within about sqrt(kSampled
// / n) of itself. A noted lookup takes longer, and is beyond the 99.9th percentile of a program's
// lookups.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace purlin::runtime {

// A thread's own: when the next of its lookups is noted.
struct LookupSampling {
  std::uint32_t left = 1, gap = 1, noted = 0, random = 0x9E3779B9u;
};
// One variable, as each takes a call to be found in a shared library. (Not initial-exec: a program
// that loads libpurlin late may have no room left for that.)
inline thread_local LookupSampling lookup_sampling;

// At last one lookup in so many is noted, on average; one in 1, 4, 16, ... before, kNotedOfEach
// times of each.
inline constexpr std::uint32_t kSampled = 16384, kNotedOfEach = 32;

// The number of lookups that a noted lookup represents: a power of four.
[[gnu::cold]] inline std::uint64_t sampled_weight(LookupSampling& s) noexcept {
  const std::uint64_t weight = s.gap;
  if (s.gap < kSampled && ++s.noted % kNotedOfEach == 0) s.gap *= 4;
  s.random ^= s.random << 13, s.random ^= s.random >> 17, s.random ^= s.random << 5;
  s.left = 1 + s.random % (2 * s.gap - 1);  // the gap on average
  return weight;
}

// The number of lookups that the current lookup represents; 0 for most lookups. Of the calling
// thread.
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
    std::size_t at = first_slot(entry);
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

  // The same, later. `weight` is a power of four, at most 4^7.
  void note_soon(const Entry* entry, std::uint64_t weight) noexcept {
    static_assert(alignof(Entry) > kWeightBits);
    static_assert(std::has_single_bit(kSampled) &&
                  std::countr_zero(kSampled) <= 2 * int{kWeightBits});
    __builtin_prefetch(&slots_[first_slot(entry)], 1);
    // One of few, by the thread: its own variable's address tells threads apart.
    const std::uintptr_t thread = reinterpret_cast<std::uintptr_t>(&lookup_sampling) >> 12;
    note_left(left_[thread % left_.size()].sample.exchange(
        reinterpret_cast<std::uintptr_t>(entry) |
            static_cast<std::uintptr_t>(std::countr_zero(weight) / 2),
        std::memory_order_acq_rel));
  }

  // visit(entry, count) for what was noted since the last time.
  template <class Visit>
  void take(Visit visit) {
    for (Left& left : left_) note_left(left.sample.exchange(0, std::memory_order_acq_rel));
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
  // A sample to be counted: the entry's address and, in its low bits, which power of four the
  // weight is; 0 for none.
  struct alignas(64) Left {
    std::atomic<std::uintptr_t> sample{0};
  };
  static constexpr std::uintptr_t kWeightBits = 7;

  static std::size_t first_slot(const Entry* entry) noexcept {
    return (reinterpret_cast<std::uintptr_t>(entry) * 0x9E3779B97F4A7C15u) >> 52;
  }
  void note_left(std::uintptr_t sample) noexcept {
    if (sample != 0)
      note(reinterpret_cast<const Entry*>(sample & ~kWeightBits),
           std::uint64_t{1} << (2 * (sample & kWeightBits)));
  }

  std::array<Left, 16> left_;
  std::array<Slot, kSlots> slots_;
  std::atomic<std::uint64_t> others_{0};
};

}  // namespace purlin::runtime
