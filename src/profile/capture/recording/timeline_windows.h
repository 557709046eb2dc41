// SPDX-License-Identifier: Apache-2.0
// TimelineWindows: which part of a run without an end is in the timeline of a plain profile. The
// windows double in length: the first is 0.1 s, and each further one is as long as all before it.
// Of each window the first kMaxEvents launches and memcpys are admitted. The last windows replace
// the earlier ones, so the timeline is of the steady state and its size has a bound
// (docs/design/timeline-windows.md).
//
// Owned by a Recorder, used with its lock held. It owns no clock: times are wall clock ns.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace purlin::profile::capture {

class TimelineWindows {
 public:
  static constexpr std::int64_t kFirstNs = 100'000'000;
  static constexpr std::uint32_t kMaxEvents = 30'000;
  static constexpr std::size_t kWindows = 32;  // 0.1 s times 2 to the 31st: 6 years

  // Whether an activity that began then is in the timeline.
  bool admit(std::int64_t start_ns) {
    if (requested_) return false;
    if (!begun_) begun_ = true, origin_ns_ = start_ns;
    std::uint32_t& events = events_[window_of(start_ns)];
    if (events >= kMaxEvents) return false;
    ++events;
    return true;
  }

  // The same for a call of the host. Calls have their own limit.
  bool admit_call(std::int64_t start_ns) {
    if (requested_) return false;
    if (!begun_) begun_ = true, origin_ns_ = start_ns;
    std::uint32_t& calls = calls_[window_of(start_ns)];
    if (calls >= kMaxEvents || events_[window_of(start_ns)] >= kMaxEvents) return false;
    ++calls;
    return true;
  }

  // The user requested a window: from now on the timeline has requested windows only.
  void request(std::int64_t start_ns) {
    if (requested_) return;
    requested_ = true;
    requested_ns_ = start_ns;
  }

  bool requested() const { return requested_; }

  // Earlier events are replaced by later ones. 0: none are.
  std::int64_t from_ns() const {
    if (requested_) return begun_ ? requested_ns_ : 0;
    const std::uint32_t most = *std::max_element(events_.begin(), events_.end());
    std::size_t last = kWindows - 1;
    while (last > 0 && events_[last] < std::max(1u, most / 2)) --last;
    // The window before is joined where nothing is missing between the two.
    if (last > 0 && events_[last - 1] < kMaxEvents) --last;
    return last == 0 ? 0 : origin_ns_ + (kFirstNs << (last - 1));
  }

 private:
  std::size_t window_of(std::int64_t start_ns) const {
    std::size_t window = 0;
    for (std::int64_t age = (start_ns - origin_ns_) / kFirstNs; age > 0; age /= 2) ++window;
    return std::min(window, kWindows - 1);
  }

  bool begun_ = false, requested_ = false;
  std::int64_t origin_ns_ = 0, requested_ns_ = 0;
  std::array<std::uint32_t, kWindows> events_ = {}, calls_ = {};
};

}  // namespace purlin::profile::capture
