// SPDX-License-Identifier: Apache-2.0
// ActivityTier: records every kernel that is enqueued while its window is open. On request it also
// records the host's waits, which have several times the overhead of all other records
// (cost_model.h). Memcpy and memset are recorded from the first window on, also between windows. If
// these kinds are switched together with the kernels' kind, CUPTI 13.0 crashes the program after
// some time and loses kernel records. It never does if only the kernels' kind is switched
// (bench/results/cupti_windows_crash.md). ActivityAggregator gets the records later.
//
// Owned by the CollectorScheduler; called as every Tier.
#pragma once

#include "profile/capture/cuda/activity/activity_aggregator.h"
#include "profile/capture/cuda/activity/attribution.h"
#include "profile/capture/cuda/activity/host_calls.h"
#include "profile/capture/cuda/cupti/library.h"
#include "profile/capture/cuda/tier.h"

namespace purlin::profile::capture::cuda {

class ActivityTier : public Tier {
 public:
  struct Options {
    bool waits = false, copies = true;
    bool host_calls = true;  // no other tier needs CUPTI's callbacks
  };

  ActivityTier(const Cupti& cupti, Recorder& recorder, ActivityAggregator& aggregator,
               Attribution& attribution, const Options& options)
      : cupti_(cupti),
        recorder_(recorder),
        aggregator_(aggregator),
        attribution_(attribution),
        options_(options),
        host_calls_(cupti, recorder) {}

  const char* name() const override { return "activity"; }
  Opened open(const Window& window) override;
  void close() override;
  std::int64_t recorded_until_ns() const override { return recorded_until_ns_; }
  void leave() override;
  bool stays() const override { return copies_on_; }
  void yield() override;
  void collect(bool final) override;
  void rest() override { host_calls_.rest(); }
  std::int64_t take_cost_ns() override;

 private:
  void ask_last_id();
  void begin_launch_times();
  void end_launch_times();

  const Cupti& cupti_;
  Recorder& recorder_;
  ActivityAggregator& aggregator_;
  Attribution& attribution_;
  const Options options_;
  HostCalls host_calls_;
  std::int64_t recorded_until_ns_ = 0;
  bool open_ = false, copies_on_ = false;
  enum class LaunchTimes { kNotYet, kOn, kOver } launch_times_ = LaunchTimes::kNotYet;
};

}  // namespace purlin::profile::capture::cuda
