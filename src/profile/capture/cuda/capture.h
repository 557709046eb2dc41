// SPDX-License-Identifier: Apache-2.0
// Capture: CUDA's capture in one process, put together: the session and its file, the
// aggregation of records, the ownership of CUPTI, and the collector scheduler that opens the tiers'
// windows. Without CUPTI or on a fault the program goes on, and a note in the profile has the
// cause.
//
//   OverheadController ──what is due──▶ CollectorScheduler ──open, close──▶ tiers ──▶ CUPTI
//                                               ▲                                       │
//   another client ──▶ Ownership ──vacate───────┘                                    buffers
//                                                                                       ▼
//   spool file ◀── CaptureSession ◀── Recorder ◀──────rows────────── ActivityAggregator
//
// One per process, never destroyed (per_process.h); [MT].
#pragma once

#include "profile/capture/cuda/activity/activity_aggregator.h"
#include "profile/capture/cuda/activity/attribution.h"
#include "profile/capture/cuda/collector_scheduler.h"
#include "profile/capture/cuda/ownership.h"
#include "profile/capture/session/session.h"

#include <atomic>
#include <mutex>
#include <string>

namespace purlin::profile::capture::cuda {

class Capture : public Source {
 public:
  Capture(const Cupti& cupti, const SessionOptions& options);

  CaptureSession& session() { return session_; }
  Ownership& ownership() { return ownership_; }
  // Registers the callbacks (see injection.cc) and opens the first window, inside cuInit: before
  // the program has a context (cost_model.h says why), and before its first launch.
  void begin(CUpti_BuffersCallbackRequestFunc requested,
             CUpti_BuffersCallbackCompleteFunc completed);
  void refuse(const char* cause, const std::string& text) { session_.recorder().note(cause, text); }

  std::int64_t tick() override;
  void collect(bool final) override;
  std::string control(const ControlRequest& request) override;
  std::uint32_t tracer_version() const override { return cupti_.version; }

 private:
  void find_devices();

  const Cupti& cupti_;
  CaptureSession session_;
  Attribution attribution_;
  ActivityAggregator aggregator_;
  CollectorScheduler scheduler_;
  Ownership ownership_;
  std::atomic<bool> begun_ = false;
  std::timed_mutex finding_devices_;
  bool devices_known_ = false;  // guarded by it
};

}  // namespace purlin::profile::capture::cuda
