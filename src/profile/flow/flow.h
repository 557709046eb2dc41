// SPDX-License-Identifier: Apache-2.0
// The data flow of a step, from a file that PyTorch's ExecutionTraceObserver wrote
// (docs/design/data-flow.md). Free functions. Errors as those of trace_reader.h, with the path;
// kNotFound. A trace without two whole steps is kInvalid.
#pragma once

#include "base/status.h"
#include "model/profile/data_flow.h"

#include <string>
#include <string_view>

namespace purlin::profile {

Result<DataFlow> read_data_flow(const std::string& path);
// The same over the bytes of such a file: tests, fuzzing.
Result<DataFlow> data_flow_of(std::string_view bytes);

}  // namespace purlin::profile
