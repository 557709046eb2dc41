// SPDX-License-Identifier: Apache-2.0
// ActivityTier: records of every kernel that is enqueued while its window is open, of copies and
// sets where the window is to have them (CUPTI 13.0 crashes programs where those are switched again
// and again: bench/results/cupti_windows_crash.md), and of the host's waits where they were asked
// for: those cost several times as much as all the others (cost_model.h). The records arrive later,
// in Folding.
//
// Owned by the Arbiter; called as every Tier.
#pragma once

#include "profile/capture/cuda/attribution.h"
#include "profile/capture/cuda/cupti_library.h"
#include "profile/capture/cuda/folding.h"
#include "profile/capture/cuda/tier.h"

namespace purlin::profile::capture::cuda {

class ActivityTier : public Tier {
 public:
  ActivityTier(const Cupti& cupti, Recorder& recorder, Folding& folding, Attribution& attribution,
               bool waits)
      : cupti_(cupti),
        recorder_(recorder),
        folding_(folding),
        attribution_(attribution),
        waits_(waits) {}

  const char* name() const override { return "activity"; }
  Opened open(const Window& window) override;
  void close() override;
  void collect(bool final) override;
  std::int64_t take_cost_ns() override;

 private:
  void ask_last_id();

  const Cupti& cupti_;
  Recorder& recorder_;
  Folding& folding_;
  Attribution& attribution_;
  const bool waits_;
  bool open_ = false, copies_ = false;
};

}  // namespace purlin::profile::capture::cuda
