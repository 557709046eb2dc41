// SPDX-License-Identifier: Apache-2.0
// Reads an execution trace of PyTorch: JSON of schema 1.1, gzip undone on the way. It streams: one
// node at a time is in memory as JSON. Foreign input: nodes, tensors, bytes and depth are bounded.
// Pure functions. Errors: kInvalid where the file is no such trace or too large, kCorrupt where it
// is damaged or cut.
#pragma once

#include "base/status.h"
#include "profile/import/flow/trace.h"
#include "profile/import/input.h"

namespace purlin::profile::flow {

Result<ExecutionTrace> read_execution_trace(Input& input);

}  // namespace purlin::profile::flow
