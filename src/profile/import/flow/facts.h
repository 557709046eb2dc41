// SPDX-License-Identifier: Apache-2.0
// The facts of one step of an execution trace, as Profile::data_flow has them
// (docs/design/data-flow.md). Pure functions.
#pragma once

#include "model/profile/data_flow.h"
#include "profile/import/flow/trace.h"

namespace purlin::profile::flow {

struct FoundFlow {
  DataFlow flow;        // of no step where the trace has fewer than two whole ones
  bool hidden = false;  // work that no op shows reads and writes too: no fact is sure
};

FoundFlow find_data_flow(const ExecutionTrace& trace);

}  // namespace purlin::profile::flow
