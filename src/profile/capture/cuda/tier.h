// SPDX-License-Identifier: Apache-2.0
// Tier: one way of recording that is switched on for windows: activity records, hardware counters,
// sampled program counters. The overhead controller decides when a window opens and for how long;
// no two tiers have a window at the same time in a process, since CUPTI cannot serve them together.
//
// Owned by the CollectorScheduler, which calls open() on the session's thread and close() there or
// on the thread of another CUPTI client that is about to use CUPTI. Purlin owns CUPTI for the whole
// window. Nothing throws. Without its hardware, permission or CUPTI function a tier says so and
// stays shut.
#pragma once

#include "profile/capture/sampling/overhead_controller.h"

#include <cstdint>

namespace purlin::profile::capture::cuda {

class Tier {
 public:
  enum class Opened {
    kYes,
    kNotNow,  // asked again at its next turn
    kNever,   // not asked again; a coverage note of the tier's says why
  };

  virtual ~Tier() = default;
  // Once, when clients' calls are noticed and before the program has a context.
  virtual void prepare() {}
  virtual const char* name() const = 0;  // as in coverage notes: "activity", "counters", "stalls"
  virtual Requirements requirements() const { return {}; }
  virtual Opened open(const Window& window) = 0;
  // Must return soon whatever the program's kernels do, and may be called when not open.
  virtual void close() = 0;
  // The same, and nothing of the tier's stays on in CUPTI between windows, either.
  virtual void leave() { close(); }
  // Whether something does.
  virtual bool stays() const { return false; }
  // Another client wants what CUPTI gives to one only (callbacks, counters): give them up, for
  // good. On the client's thread, after close().
  virtual void yield() {}
  // Before each seal, on the session's thread: decode and fold what the last windows brought. At
  // exit (final) on the thread that exits, after close().
  virtual void collect(bool final) = 0;
  // What windows took from the program's own threads since the last call, estimated: the overhead
  // controller spaces the tier's windows so that this stays within its share of the budget.
  virtual std::int64_t take_cost_ns() = 0;
  // What it took once and will not take again: counted, but no window is put off for it.
  virtual std::int64_t take_once_ns() { return 0; }
};

}  // namespace purlin::profile::capture::cuda
