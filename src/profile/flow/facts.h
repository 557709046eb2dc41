// SPDX-License-Identifier: Apache-2.0
// The facts of one step of an execution trace, as Profile::data_flow has them
// (docs/design/data-flow.md). Pure functions; a trace without two whole steps gives none.
#pragma once

#include "model/profile/data_flow.h"
#include "profile/flow/trace.h"

namespace purlin::profile::flow {

DataFlow find_data_flow(const ExecutionTrace& trace);

}  // namespace purlin::profile::flow
