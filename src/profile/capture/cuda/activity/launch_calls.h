// SPDX-License-Identifier: Apache-2.0
// The calls of CUDA's runtime and driver that start work or wait for it. Their records identify
// the thread and range of a launch. Other calls are not recorded: records of API calls have more
// overhead than those of the work (reference figures: docs/guide/profiling.md).
//
// Pure functions over a fixed table, and functions that switch its records. A call that CUPTI
// refuses is skipped: its launches have no op.
#pragma once

#include "model/profile/timeline.h"
#include "profile/capture/cuda/cupti/library.h"

#include <cstdint>
#include <functional>

namespace purlin::profile::capture::cuda {

struct LaunchCall {
  const char* name = "";
  CallKind kind = CallKind::kOther;
};

// Of an API record; null for calls that are not in the table.
const LaunchCall* launch_call(CUpti_ActivityKind kind, CUpti_CallbackId id);

// Of the driver: each that may wait for a device, copies, or launches a graph.
void for_each_waiting_call(const std::function<void(CUpti_CallbackId)>& take);

// The calls whose records are switched on: all of the two APIs, or (CUPTI 12.5) those that remain
// after the others were switched off one by one. The documented way, to switch on a few one by one,
// reports success on 13.0 but records nothing once a context exists. Switching on takes 290 us,
// switching off 50 us (H200).
enum class CallRecords { kAll, kLaunches, kLaunchesCopiesWaits };

// With CUPTI's turn held.
CUptiResult enable_launch_calls(const Cupti& cupti, CallRecords records);
void disable_launch_calls(const Cupti& cupti);

}  // namespace purlin::profile::capture::cuda
