// SPDX-License-Identifier: Apache-2.0
// Intervals of time, and coverage: records in order of their start, read once, as the union of
// their intervals. Half-open, [begin, end). Nothing is stored but the interval under way, so a
// timeline of any size is swept in constant memory. Values; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace purlin::analyze {

struct Interval {
  std::int64_t begin = 0, end = 0;
  std::int64_t length() const { return end - begin; }
};

// Records are foreign: durations may be negative, times absurd. What is computed with them must not
// overflow; 2^61 ns is the year 2043.
inline constexpr std::int64_t kLatest = std::int64_t{1} << 61;
template <class Record>
std::int64_t begin_of(const Record& record) {
  return std::clamp(record.start_ns, -kLatest, kLatest);
}
template <class Record>
std::int64_t end_of(const Record& record) {
  return begin_of(record) + std::clamp<std::int64_t>(record.duration_ns, 0, kLatest / 2);
}
template <class Record>
Interval interval_of(const Record& record) {
  return {begin_of(record), end_of(record)};
}

inline Interval clip(Interval interval, Interval window) {
  interval.begin = std::max(interval.begin, window.begin);
  interval.end = std::max(interval.begin, std::min(interval.end, window.end));
  return interval;
}

// The union of intervals that a source gives in order of begin.
class IntervalCoverage {
 public:
  using Source = std::function<bool(Interval&)>;  // false: no more
  explicit IntervalCoverage(Source source) : source_(std::move(source)) {
    has_next_ = source_(next_);
    advance();
  }
  // The interval that covers `at` or else the first one after it; false: none. `at` must not
  // decrease from call to call.
  bool find(std::int64_t at, Interval& found) {
    while (has_current_ && current_.end <= at) advance();
    found = current_;
    return has_current_;
  }

 private:
  void advance() {
    has_current_ = has_next_;
    if (!has_next_) return;
    current_ = next_;
    while ((has_next_ = source_(next_)) && next_.begin <= current_.end)
      current_.end = std::max(current_.end, next_.end);
  }
  Source source_;
  Interval current_, next_;
  bool has_current_ = false, has_next_ = false;
};

// Every moment of `window` goes to the first of `layers` that covers it, or to none (index
// layers.size()). Calls piece(interval, index), in order, without gaps. Windows of successive calls
// must be in order.
void sweep_layers(std::vector<IntervalCoverage>& layers, Interval window,
                  const std::function<void(Interval, std::size_t)>& piece);

}  // namespace purlin::analyze
