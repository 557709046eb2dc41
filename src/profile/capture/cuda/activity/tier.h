// SPDX-License-Identifier: Apache-2.0
// ActivityTier: records of every kernel that is enqueued while its window is open, and of the
// host's waits where they were asked for: those cost several times as much as all the others
// (cost_model.h). Copies and sets of memory are recorded from the first window on, between windows,
// too: where these kinds are switched beside kernels' CUPTI 13.0 crashes the program sooner or
// later, and loses kernels' records; where kernels' kind alone is, never
// (bench/results/cupti_windows_crash.md). The records arrive later, in ActivityAggregator.
//
// Owned by the CollectorScheduler; called as every Tier.
#pragma once

#include "profile/capture/cuda/activity/activity_aggregator.h"
#include "profile/capture/cuda/activity/attribution.h"
#include "profile/capture/cuda/cupti/library.h"
#include "profile/capture/cuda/tier.h"

namespace purlin::profile::capture::cuda {

class ActivityTier : public Tier {
 public:
  ActivityTier(const Cupti& cupti, Recorder& recorder, ActivityAggregator& aggregator,
               Attribution& attribution, bool waits, bool copies)
      : cupti_(cupti),
        recorder_(recorder),
        aggregator_(aggregator),
        attribution_(attribution),
        waits_(waits),
        copies_(copies) {}

  const char* name() const override { return "activity"; }
  Opened open(const Window& window) override;
  void close() override;
  void leave() override;
  bool stays() const override { return copies_on_; }
  void collect(bool final) override;
  std::int64_t take_cost_ns() override;

 private:
  void ask_last_id();

  const Cupti& cupti_;
  Recorder& recorder_;
  ActivityAggregator& aggregator_;
  Attribution& attribution_;
  const bool waits_, copies_;
  bool open_ = false, copies_on_ = false;
};

}  // namespace purlin::profile::capture::cuda
