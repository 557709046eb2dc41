// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/tiers.h"

#include "profile/capture/cuda/activity/tier.h"
#include "profile/capture/cuda/counters/cupti_counters.h"
#include "profile/capture/cuda/counters/tier.h"
#include "profile/capture/cuda/stalls/tier.h"

namespace purlin::profile::capture::cuda {

std::vector<std::unique_ptr<Tier>> make_tiers(const TierNeeds& needs) {
  std::vector<std::unique_ptr<Tier>> tiers;
  CounterOptions counters;
  StallOptions stalls;
  const bool counts = CounterOptions::from_environment(counters);
  const bool samples = needs.cupti.handle != nullptr && StallOptions::from_environment(stalls);
  const ActivityTier::Options options = {needs.options.waits, needs.options.sampler.copies,
                                         !counts && !samples};
  tiers.push_back(std::make_unique<ActivityTier>(needs.cupti, needs.recorder, needs.aggregator,
                                                 needs.attribution, options));
  if (counts)
    tiers.push_back(
        std::make_unique<CounterTier>(make_cupti_counters(needs.cupti), needs.recorder, counters));
  if (samples) {
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
