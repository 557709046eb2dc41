// SPDX-License-Identifier: Apache-2.0
// LookupMemo: the answers of an index for the shapes that a program requests repeatedly. They lie
// in few lines that are close together, also when the index's table is large.
//
// The requested extents choose a line of the processor's caches. A line holds two answers, or one
// for more than four dimensions, each under all of its extents. An answer that has no room in its
// line goes to the adjacent line, so few of the shapes in use displace each other. An answer is
// valid only in the epoch in which it was given. The index raises its epoch when an answer may
// change, which drops all answers at once. Extents of 2^32 and more are not kept.
// LookupMemo owns the lines; readers hold AnswerLines.
// [MT] find() is wait-free. keep() tries once: while another thread writes, it keeps nothing.
#pragma once

#include "cache/hot/huge_page_buffer.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

namespace purlin::cache {

// The lines, and how many there are, in one word, so that a reader gets both at once. Owns nothing.
class AnswerLines {
 public:
  AnswerLines() = default;  // none; not to be asked

  // The answer, or 0 if the lines hold none. With an odd `epoch` nothing is found.
  template <std::size_t D>
  [[gnu::always_inline]] std::uint64_t find(const std::int64_t* extents,
                                            std::uint32_t epoch) const noexcept {
    const Key<D> key(extents);
    for (std::size_t at = 0; at < kAnswers<D>; ++at) {
      const std::atomic<std::uint64_t>* words = words_of<D>(key, at);
      const std::uint64_t stamp = words[0].load(std::memory_order_acquire);
      const std::uint64_t answer = words[1].load(std::memory_order_acquire);
      std::uint64_t differs = key.too_large | ((stamp >> 32) ^ epoch);
      for (std::size_t i = 0; i < key.words.size(); ++i)
        differs |= words[2 + i].load(std::memory_order_acquire) ^ key.words[i];
      if (differs == 0 && words[0].load(std::memory_order_relaxed) == stamp) return answer;
    }
    return 0;
  }

  // Whether there is room for these extents in their lines; else an answer would be displaced.
  template <std::size_t D>
  bool has_room(const std::int64_t* extents, std::uint32_t epoch) const noexcept {
    const Key<D> key(extents);
    bool room = false;
    for (std::size_t at = 0; at < kAnswers<D>; ++at)
      room |= words_of<D>(key, at)->load(std::memory_order_relaxed) >> 32 != epoch;
    return room && key.too_large == 0;
  }

  // `answer` was computed after `epoch` was read; `epoch` is even. If the lines have no room, the
  // answer replaces each of their answers in turn.
  template <std::size_t D>
  void keep(const std::int64_t* extents, std::uint64_t answer, std::uint32_t epoch) const noexcept {
    const Key<D> key(extents);
    if (key.too_large != 0) return;
    std::size_t at = 0;
    std::uint64_t writes = 0, stamp = 0;
    for (; at < kAnswers<D>; ++at) {
      stamp = words_of<D>(key, at)->load(std::memory_order_relaxed);
      if (stamp >> 32 != epoch) break;
      writes += stamp & kWriteCount;
    }
    if (at == kAnswers<D>) at = writes % kAnswers<D>;
    std::atomic<std::uint64_t>* words = words_of<D>(key, at);
    stamp = words[0].load(std::memory_order_relaxed);
    const std::uint64_t count = (stamp + 1) & kWriteCount;
    if (stamp >> 32 == kBeingWritten ||
        !words[0].compare_exchange_strong(stamp, kBeingWritten << 32 | count,
                                          std::memory_order_acquire, std::memory_order_relaxed))
      return;
    words[1].store(answer, std::memory_order_release);
    for (std::size_t i = 0; i < key.words.size(); ++i)
      words[2 + i].store(key.words[i], std::memory_order_release);
    words[0].store(std::uint64_t{epoch} << 32 | count, std::memory_order_release);
  }

  template <std::size_t D>
  void prefetch(const std::int64_t* extents) const noexcept {
    __builtin_prefetch(lines() + (Key<D>(extents).sum >> shift()));
  }

  std::size_t count() const { return std::size_t{1} << (64 - shift()); }

 protected:
  // Of each answer: a stamp (its epoch above, a count of writes below), the answer, the extents,
  // two a word.
  static constexpr std::size_t kWords = 8;
  struct alignas(64) Line : std::array<std::atomic<std::uint64_t>, kWords> {};
  AnswerLines(Line* lines, std::size_t count)  // a power of two, at least 2
      : word_(reinterpret_cast<std::uintptr_t>(lines) |
              static_cast<std::uintptr_t>(64 - std::countr_zero(count))) {}
  Line* lines() const noexcept { return reinterpret_cast<Line*>(word_ & ~kShift); }

 private:
  template <std::size_t D>
  static constexpr std::size_t kWordsOfAnswer = D <= 4 ? kWords / 2 : kWords;
  template <std::size_t D>
  static constexpr std::size_t kAnswers = 2 * kWords / kWordsOfAnswer<D>;  // of two lines
  static constexpr std::uint64_t kBeingWritten = 1;  // in place of the epoch; epochs are even
  static constexpr std::uint64_t kWriteCount = 0xFFFFFFFFu;

  template <std::size_t D>
  struct Key {
    explicit Key(const std::int64_t* extents) noexcept {
      constexpr std::uint64_t kFactors[] = {0xF1357AEA2E62A9C5u, 0x9E6C63D0876A9A99u,
                                            0xD1B54A32D192ED03u, 0xABC98388FB8FAC03u};
      std::uint64_t all = 0;
      for (std::size_t i = 0; i < D; ++i) {
        const auto extent = static_cast<std::uint64_t>(extents[i]);
        all |= extent;
        words[i / 2] |= i % 2 == 0 ? extent : extent << 32;
      }
      for (std::size_t i = 0; i < words.size(); ++i) sum += words[i] * kFactors[i];
      too_large = all >> 32;
    }
    std::array<std::uint64_t, (D + 1) / 2> words{};
    std::uint64_t sum = 0;        // its upper bits tell where
    std::uint64_t too_large = 0;  // else 0
  };

  // Where the answer number `at` of a key's two lines lies.
  template <std::size_t D>
  std::atomic<std::uint64_t>* words_of(const Key<D>& key, std::size_t at) const noexcept {
    constexpr std::size_t kOfLine = kWords / kWordsOfAnswer<D>;
    Line& line = lines()[(key.sum >> shift()) ^ (at / kOfLine)];
    return line.data() + at % kOfLine * kWordsOfAnswer<D>;
  }

  // In the low bits of a line's address.
  static constexpr std::uintptr_t kShift = alignof(Line) - 1;
  int shift() const noexcept { return static_cast<int>(word_ & kShift); }

  std::uintptr_t word_ = 0;
};

static_assert(std::atomic<AnswerLines>::is_always_lock_free);

class LookupMemo : private HugePageBuffer, public AnswerLines {
 public:
  // A power of two, at least 2.
  explicit LookupMemo(std::size_t count)
      : HugePageBuffer(count * sizeof(Line)), AnswerLines(new (data()) Line[count](), count) {}
  using HugePageBuffer::bytes;
};

}  // namespace purlin::cache
