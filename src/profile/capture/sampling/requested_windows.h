// SPDX-License-Identifier: Apache-2.0
// RequestedWindows: times in which every launch is recorded, beyond the budget too. A user requests
// one with `purlin capture window`, or one at a random place in each cell of time (PURLIN_WINDOW).
//
// Owned by the OverheadController. Thread-safety: none. It owns no clock: times are monotonic ns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace purlin::profile::capture {

class RequestedWindows {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  // Zeros: no cells.
  RequestedWindows(std::int64_t window_ns, std::int64_t cell_ns, std::int64_t now_ns)
      : window_ns_(window_ns), cell_ns_(cell_ns), cell_end_ns_(now_ns) {}

  bool in_cells() const { return window_ns_ > 0; }
  bool active(std::int64_t now_ns) const { return now_ns < until_ns_; }
  std::int64_t until_ns() const { return until_ns_; }
  // When this is to be asked again at the latest.
  std::int64_t next_ns() const { return in_cells() ? std::min(next_ns_, cell_end_ns_) : next_ns_; }

  // Moves on to the cell of now. `random(room)`: a place in [0, room).
  template <class Random>
  void advance(std::int64_t now_ns, Random random) {
    while (now_ns >= cell_end_ns_) {
      const double room = std::max(0.0, static_cast<double>(cell_ns_ - window_ns_));
      next_ns_ = cell_end_ns_ + static_cast<std::int64_t>(random(room));
      cell_end_ns_ += cell_ns_;
    }
    if (now_ns < next_ns_) return;
    until_ns_ = std::max(until_ns_, next_ns_ + window_ns_);
    next_ns_ = kNever;
  }
  // CUPTI's initialisation may take most of a short window: a length counts from the opening.
  void request(std::int64_t now_ns, std::int64_t length_ns, bool is_open) {
    until_ns_ = std::max(until_ns_, now_ns + length_ns);
    if (!is_open) requested_ns_ = std::max(requested_ns_, length_ns);
  }
  void opened(std::int64_t now_ns) {
    if (requested_ns_ > 0) until_ns_ = std::max(until_ns_, now_ns + requested_ns_);
    requested_ns_ = 0;
  }
  void expire() { requested_ns_ = 0; }  // the request is over, whether or not it was opened
  void start(std::int64_t now_ns) { cell_end_ns_ = std::max(cell_end_ns_, now_ns); }
  void stop() {
    until_ns_ = requested_ns_ = 0;
    next_ns_ = kNever;
  }

 private:
  std::int64_t window_ns_, cell_ns_;
  std::int64_t until_ns_ = 0, next_ns_ = kNever, cell_end_ns_;
  std::int64_t requested_ns_ = 0;  // the length of a request, until its window opens
};

}  // namespace purlin::profile::capture
