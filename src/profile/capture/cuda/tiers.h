// SPDX-License-Identifier: Apache-2.0
// Makes the tiers of a capture from its options. The CollectorScheduler owns them. A new tier is a
// line in tiers.cc. A tier that the options leave out is not made; one that the machine does not
// support stays closed and adds a note.
#pragma once

#include "profile/capture/cuda/activity/activity_aggregator.h"
#include "profile/capture/cuda/cupti/library.h"
#include "profile/capture/cuda/tier.h"
#include "profile/capture/session/session.h"

#include <memory>
#include <vector>

namespace purlin::profile::capture::cuda {

// What tiers are made with; it outlives them.
struct TierNeeds {
  const Cupti& cupti;
  const SessionOptions& options;
  Recorder& recorder;
  ActivityAggregator& aggregator;
  Attribution& attribution;
};

// The first records launches. Makes nothing known to CUPTI: that is open()'s.
std::vector<std::unique_ptr<Tier>> make_tiers(const TierNeeds& needs);

}  // namespace purlin::profile::capture::cuda
