// SPDX-License-Identifier: Apache-2.0
// SpanLog: ranges that the program starts on one thread and may end on another (NVTX's start and
// end). They identify no launch, but a timeline shows them and finds the program's steps with them.
// Only ranges that start while spans are kept are known. Memory is bounded; lost spans are counted.
//
// One per RangeLog; [MT] every method. Nothing throws: if memory runs out a span is lost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace purlin::profile::capture {

class SpanLog {
 public:
  static constexpr std::size_t kMaxOpen = 4096, kMaxEnded = 16'384;

  struct Span {
    std::string name;
    std::int64_t begin_ns = 0, end_ns = 0;  // wall clock
  };

  bool keeping() const { return keeping_.load(std::memory_order_relaxed); }
  // Spans that are open when this becomes false are kept to their end.
  void keep(bool wanted) { keeping_.store(wanted, std::memory_order_relaxed); }

  // A number that no other span has; the name is read while they are kept.
  std::uint64_t start(std::string_view name);
  void end(std::uint64_t number);

  // The spans that have ended since the last call; `all`: open spans end now.
  std::vector<Span> take(bool all);
  std::uint64_t take_lost() { return lost_.exchange(0); }

 private:
  std::atomic<bool> keeping_ = false;
  std::atomic<std::uint64_t> next_ = 1, lost_ = 0;
  std::atomic<std::size_t> open_count_ = 0;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Span> open_;
  std::vector<Span> ended_;
};

}  // namespace purlin::profile::capture
