// SPDX-License-Identifier: Apache-2.0
// The counters' hardware through CUPTI's range profiler. CUPTI's callbacks of driver functions
// report launches, stream captures and ends of contexts.
//
// One session at a time. User ranges for single launches, or kernel replay (see hardware.h). Never
// destroyed: callbacks may still run when the process exits.
#pragma once

#include "profile/capture/cuda/counters/hardware.h"
#include "profile/capture/cuda/cupti/library.h"

#include <memory>

namespace purlin::profile::capture::cuda {

std::unique_ptr<CounterHardware> make_cupti_counters(const Cupti& cupti);

}  // namespace purlin::profile::capture::cuda
