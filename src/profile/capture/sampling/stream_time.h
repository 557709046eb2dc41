// SPDX-License-Identifier: Apache-2.0
// StreamTime: the greatest weight that a window can have. A stream runs its work one piece at a
// time, so its weighted launches take no longer than the time since its first work. A window
// whose weight is known by time alone may claim more, where the program launched more inside the
// window than outside.
//
// Owned by the ActivityAggregator. Thread-safety: none. Pure arithmetic. Memory is bounded: streams
// beyond kMaxStreams have no bound. In doubt work counts as less: delayed records do not count.
#pragma once

#include "profile/capture/sampling/device_busy.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace purlin::profile::capture {

class StreamTime {
 public:
  static constexpr std::size_t kMaxStreams = DeviceBusy::kMaxStreams;

  // Successive work of one stream; nodes of a graph may overlap.
  struct Run {
    DeviceBusy::Stream stream;
    std::int64_t start_ns = 0, end_ns = 0;  // wall clock
    std::int64_t busy_ns = 0;
    double pieces = 0;
    // False: the work belongs to another run.
    bool take(const DeviceBusy::Work& work);
  };

  // `weight` 0: settle() knows it.
  void add(const Run& run, double weight);
  // The greatest weight of the work without one. `last`: the program ends, and its devices have run
  // what it launched. Before, as much as a queue holds may still have to run.
  double most(std::int64_t now_ns, bool last) const;
  // The weight of that work.
  void settle(double weight);
  // The time that weighted launches of streams take beyond the wall time.
  double beyond_ns(std::int64_t now_ns) const;

 private:
  struct OfStream {
    DeviceBusy::Stream stream;
    std::int64_t first_ns = 0, until_ns = 0;
    double represented_ns = 0;          // weighted
    double unknown_ns = 0, pieces = 0;  // without a weight
  };
  OfStream* find(const DeviceBusy::Stream& stream);

  std::array<OfStream, kMaxStreams> streams_ = {};
  std::size_t count_ = 0, last_found_ = 0;
};

}  // namespace purlin::profile::capture
