// SPDX-License-Identifier: Apache-2.0
// Launch queues and launches: how far the host runs ahead of each stream, what a launch costs it,
// and how long work waits. Only activities whose call is known take part, so a trace that lost
// launches cannot drive a depth below zero. Pure functions.
#pragma once

#include "analyze/timeline/intervals.h"
#include "analyze/timeline/streams.h"
#include "analyze/timeline/timeline.h"

#include <map>

namespace purlin::analyze {

// From the begin of the call to the begin of the work; a graph's launch counts once. The mean is
// over `window`, maximum and time at the limit too.
QueueStats measure_queue(const Timeline& timeline, const StreamWork& stream, Interval window);

// Of the kernels that begin in the window of their device.
LaunchStats measure_launches(const Timeline& timeline, const std::map<int, Interval>& windows);

}  // namespace purlin::analyze
