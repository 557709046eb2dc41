// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/tiers.h"

#include "profile/capture/cuda/activity/tier.h"
#include "profile/capture/cuda/counters/cupti_counters.h"
#include "profile/capture/cuda/counters/tier.h"
#include "profile/capture/cuda/stalls/tier.h"

namespace purlin::profile::capture::cuda {

std::vector<std::unique_ptr<Tier>> make_tiers(const TierNeeds& needs) {
  std::vector<std::unique_ptr<Tier>> tiers;
  tiers.push_back(std::make_unique<ActivityTier>(needs.cupti, needs.recorder, needs.aggregator,
                                                 needs.attribution, needs.options.waits,
                                                 needs.options.sampler.copies));
  if (CounterOptions counters; CounterOptions::from_environment(counters))
    tiers.push_back(
        std::make_unique<CounterTier>(make_cupti_counters(needs.cupti), needs.recorder, counters));
  if (StallOptions stalls;
      needs.cupti.handle != nullptr && StallOptions::from_environment(stalls)) {
    PcSampling sampling;
    if (std::string reason; bind_pc_sampling(needs.cupti, sampling, reason)) {
      tiers.push_back(std::make_unique<StallTier>(sampling, needs.recorder, stalls));
    } else {
      needs.recorder.note("no_stalls", "stalls are not sampled: " + reason);
    }
  }
  return tiers;
}

}  // namespace purlin::profile::capture::cuda
