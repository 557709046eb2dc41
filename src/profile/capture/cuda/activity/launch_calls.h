// SPDX-License-Identifier: Apache-2.0
// The calls of CUDA's runtime and driver that start work or wait for it: the few whose records tell
// who launched what. All other calls stay unrecorded, as records of API calls cost more than those
// of the work (reference figures: docs/guide/profiling.md).
//
// Pure functions over a fixed table, and the switching of it. A call of CUPTI that is refused is
// skipped: its launches have no op.
#pragma once

#include "model/profile/timeline.h"
#include "profile/capture/cuda/cupti/library.h"

#include <cstdint>

namespace purlin::profile::capture::cuda {

struct LaunchCall {
  const char* name = "";
  CallKind kind = CallKind::kOther;
};

// Of an API record; null for calls that are not in the table.
const LaunchCall* launch_call(CUpti_ActivityKind kind, CUpti_CallbackId id);

// Which calls' records are switched on: all of the two APIs, or (CUPTI 12.5) what is left after the
// others were switched off one by one. Switching the few on one by one, as CUPTI documents, answers
// success and records nothing on 13.0 once a context exists. 290 us for what is kept, off 50 us
// (H200).
enum class CallRecords { kAll, kLaunches, kLaunchesCopiesWaits };

// With CUPTI's turn held.
CUptiResult enable_launch_calls(const Cupti& cupti, CallRecords records);
void disable_launch_calls(const Cupti& cupti);

}  // namespace purlin::profile::capture::cuda
