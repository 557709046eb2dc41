// SPDX-License-Identifier: Apache-2.0
// How much longer the host took because it was recorded, as a range. A step's time outside of the
// recording narrows it (Replayer). Times are ns. Pure functions.
#pragma once

#include "analyze/replay/graph.h"
#include "analyze/replay/scenario.h"
#include "model/profile/profile.h"

namespace purlin::analyze {

// Recorded host time is `factor` times the program's own and `call_ns` more for each call, both
// `amount` times over: least first.
struct HostInflation {
  double factor = 1, call_ns = 0;
  Interval3 amount;
  bool ops = false;  // it records ops, and its cost is that of them
};
// A recorder of a framework's ops slows all of the host: Kineto by 1.1 to 2.2 where the host sets
// the pace. One of launches adds to each call.
HostInflation host_inflation(const Profile& profile);

// The host's own time without the recorder; at least a fifth of each.
void take_off_recorder(const Graph& graph, const HostInflation& inflation, double amount,
                       Weights& weights);

}  // namespace purlin::analyze
