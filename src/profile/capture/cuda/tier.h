// SPDX-License-Identifier: Apache-2.0
// Tier: one way of recording that is switched on for windows: activity records, hardware counters,
// sampled program counters. The overhead controller decides when a window opens and for how long;
// no two tiers have a window at the same time in a process, since CUPTI cannot serve them together.
//
// Owned by the CollectorScheduler, which calls open() on the session's thread and close() there or
// on the thread of another CUPTI client that is about to use CUPTI. Purlin owns CUPTI for the whole
// window. Nothing throws. Without its hardware, permission or CUPTI function a tier adds a note and
// stays closed.
#pragma once

#include "profile/capture/sampling/overhead_controller.h"

#include <cstdint>

namespace purlin::profile::capture::cuda {

class Tier {
 public:
  enum class Opened {
    kYes,
    kNotNow,  // asked again at its next turn
    kNever,   // not asked again; a coverage note of the tier has the reason
  };

  virtual ~Tier() = default;
  // Once, when clients' calls are detected and before the program has a context.
  virtual void prepare() {}
  virtual const char* name() const = 0;  // as in coverage notes: "activity", "counters", "stalls"
  virtual Requirements requirements() const { return {}; }
  virtual Opened open(const Window& window) = 0;
  // Must return soon for any state of the program's kernels; may be called when not open.
  virtual void close() = 0;
  // Monotonic: when the last close() had ended recording. 0: when it returned.
  virtual std::int64_t recorded_until_ns() const { return 0; }
  // The same, and also switches off what the tier leaves on in CUPTI between windows.
  virtual void leave() { close(); }
  // Whether the tier leaves something on.
  virtual bool stays() const { return false; }
  // Another client needs functions that CUPTI allows to one client only (callbacks, counters): give
  // them up, for good. On the client's thread, after close().
  virtual void yield() {}
  // Before each seal, on the session's thread: decode and aggregate the records of the last
  // windows. At exit (final) on the thread that exits, after close().
  virtual void collect(bool final) = 0;
  // When recording has ended for good, and before each seal after that.
  virtual void rest() {}
  // The estimated overhead of windows on the program's own threads since the last call. The
  // overhead controller spaces the tier's windows to keep it within the tier's share of the budget.
  virtual std::int64_t take_cost_ns() = 0;
  // One-time overhead: it is counted, but does not delay windows.
  virtual std::int64_t take_once_ns() { return 0; }
};

}  // namespace purlin::profile::capture::cuda
