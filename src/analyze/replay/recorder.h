// SPDX-License-Identifier: Apache-2.0
// What a recorder adds to the host's time: a range, which a step's time outside of the recording
// narrows. Pure functions.
#pragma once

#include "analyze/replay/graph.h"
#include "analyze/replay/scenario.h"

#include <string>

namespace purlin::analyze {

// For each host call and op that it records, ns. Kineto: 1.1 us a launch for activities alone, up
// to 4.5 with API records (H200); its ops with shapes 0.5 to 2 us.
struct RecorderOverhead {
  Interval3 call, op;  // low cost first
};
RecorderOverhead recorder_overhead(const std::string& source);

// The host without its recorder. At least a fifth of each time is left.
void take_off_recorder(const Graph& graph, double call_ns, double op_ns, Weights& weights);

}  // namespace purlin::analyze
