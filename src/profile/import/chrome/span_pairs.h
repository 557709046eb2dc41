// SPDX-License-Identifier: Apache-2.0
// SpanPairs: the events of a Chrome trace that come as a begin ("B") and an end ("E"), as one each.
//
// Pairs nest within a track, a thread of a process: an end closes the last begin of its track. A
// begin is copied, because its text is gone by the time of its end. Belongs to one thread.
#pragma once

#include "profile/import/chrome/event.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::profile {

class SpanPairs {
 public:
  // False where too many are open; it is left out.
  bool begin(const ChromeEvent& event);
  // The whole event with its duration; nullptr without a begin, or without times. Valid until the
  // next call. Members of the end count where the begin has none.
  const ChromeEvent* end(const ChromeEvent& event);
  // Begins without an end so far.
  std::size_t open() const { return open_count_; }

 private:
  struct Open {
    std::string text;  // what the event's members view
    std::string duration;
    ChromeEvent event;
  };

  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<Open>>> open_;  // by track
  std::size_t open_count_ = 0;
  std::unique_ptr<Open> closed_;
};

}  // namespace purlin::profile
