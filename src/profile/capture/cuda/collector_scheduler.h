// SPDX-License-Identifier: Apache-2.0
// CollectorScheduler: opens and closes the tiers as the overhead controller decides, one at a time,
// and reports their overhead to it. It closes everything when another CUPTI client appears.
//
// When kernel records may be switched on again, they are first enabled once the program has a
// context. CUPTI 13.0's hooks then stay in the program. If records were enabled earlier, CUPTI
// removes the hooks at the first disabling, and a thread inside a launch loses all later records
// (bench/results/cupti_window_threads.md).
//
// Owned by Capture. tick() and collect() belong to the session's thread, collect(true) to the
// thread that exits; vacate() is called by a client's thread. CUPTI is called only during the
// ownership's turn.
#pragma once

#include "profile/capture/cuda/activity/activity_aggregator.h"
#include "profile/capture/cuda/cupti/flush_times.h"
#include "profile/capture/cuda/cupti/toggle_watch.h"
#include "profile/capture/cuda/ownership.h"
#include "profile/capture/cuda/tier.h"
#include "profile/capture/sampling/overhead_controller.h"
#include "profile/capture/sampling/processor_wait.h"
#include "profile/control_text.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::profile::capture::cuda {

class CollectorScheduler : public Tenant {
 public:
  CollectorScheduler(const ControllerOptions& options, std::vector<std::unique_ptr<Tier>> tiers,
                     ActivityAggregator& aggregator, Recorder& recorder);

  void begin();  // prepares the tiers
  // Opens and closes what is due; returns when to be called again (monotonic).
  std::int64_t tick(Ownership& ownership);
  void collect(Ownership& ownership, bool final);
  // On demand: what the overhead controller would not do by itself. A JSON object with what is so
  // afterwards.
  std::string control(Ownership& ownership, const ControlRequest& request);
  void vacate() override;
  void yield() override;

 private:
  bool context_awaited(Ownership& ownership);
  std::string_view state(std::int64_t now_ns) const;
  bool needs_cupti(std::int64_t now_ns) const;
  bool opened_before_context() const;
  bool opens_again(std::int64_t now_ns) const;
  void keep_window_waiting(std::int64_t length_ns);
  std::int64_t take_waiting_window();
  void begin_asked_window(std::int64_t length_ns);
  void open(Ownership& ownership, const OverheadController::Decision& decision);
  void close_open_tier(bool final = false);
  void cycle();
  void start_counter(bool stood_still);
  std::int64_t fetch_records(std::int64_t before_ns);
  void keep_apart();  // waits, some milliseconds at most, until kinds may be switched
  void collect(int tier, bool final);
  void account(int tier);
  void end_stuck(Ownership& ownership);
  void settle(bool last = false);
  void report();
  void note_ended();
  void note_presence();
  void rest_copies();
  void leave_copies();
  void watch_self();

  std::vector<std::unique_ptr<Tier>> tiers_;
  ActivityAggregator& aggregator_;
  Recorder& recorder_;
  OverheadController controller_;
  bool awaits_context_;
  std::int64_t waiting_window_ns_ = 0;  // so long a window was asked for before there was a context
  int open_ = OverheadController::kNone;
  std::int64_t opened_ns_ = 0;  // when that was, or was refused
  FlushTimes flush_times_;
  std::int64_t next_switch_ns_ = FlushTimes::kNever;  // as planned
  std::int64_t fetched_before_ns_ = 0;
  ToggleWatch toggles_;
  ProcessorWait processor_wait_;
  bool stuck_ = false;
  bool told_ended_ = false, told_presence_ = false, told_copies_ = false;
  std::int64_t ended_ns_ = 0;  // end of a capture without later windows; wall clock
  int quiet_collects_ = 0;     // since launches were last recorded
  std::int64_t watched_since_ns_ = 0, watched_cpu_ns_ = 0;
  double told_spent_ns_ = 0, told_unseen_ns_ = 0;
};

}  // namespace purlin::profile::capture::cuda
