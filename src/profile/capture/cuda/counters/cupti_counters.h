// SPDX-License-Identifier: Apache-2.0
// The counters' hardware as CUPTI's range profiler drives it, and CUPTI's callbacks of the driver's
// functions, by which launches, stream captures and ends of contexts are seen.
//
// One session at a time. User ranges for single launches, or kernel replay (see
// counter_hardware.h). Never destroyed: callbacks may still be under way when the process exits.
#pragma once

#include "profile/capture/cuda/counters/hardware.h"
#include "profile/capture/cuda/cupti/library.h"

#include <memory>

namespace purlin::profile::capture::cuda {

std::unique_ptr<CounterHardware> make_cupti_counters(const Cupti& cupti);

}  // namespace purlin::profile::capture::cuda
