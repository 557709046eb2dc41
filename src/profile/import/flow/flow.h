// SPDX-License-Identifier: Apache-2.0
// The data flow of a step, from a file that PyTorch's ExecutionTraceObserver wrote
// (docs/design/data-flow.md). Free functions. Errors as those of trace_reader.h, with the path;
// kNotFound. A trace without two whole steps is kInvalid, one of a program with kernels that no op
// launches kUnavailable.
#pragma once

#include "base/status.h"
#include "model/profile/profile.h"

#include <string>
#include <string_view>

namespace purlin::profile {

Result<DataFlow> read_data_flow(const std::string& path);
// The same over the bytes of such a file: tests, fuzzing.
Result<DataFlow> data_flow_of(std::string_view bytes);

// By the beginning of a file.
bool looks_like_execution_trace(std::string_view prefix);
// A profile of the data flow only, to be merged; a note where it is not known.
Result<Profile> import_execution_trace(const std::string& path);

// Kernels of the timeline that no op of PyTorch launched, in a step: what they read and write is in
// no execution trace. The data flow then goes, and a note tells it.
void judge_by_timeline(Profile& profile);

}  // namespace purlin::profile
