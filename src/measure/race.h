// SPDX-License-Identifier: Apache-2.0
// Race: when a kernel that is being timed has been sampled often enough.
//
// Most configs of a search lose, and one or two samples say so. How far behind is hopeless depends
// on how much the samples of one kernel scatter on this device, which is learnt from the kernels
// timed before. Pure functions, shared by the stopwatch and by the benchmark that proves them
// (bench/race.cc). Thread-safety: all.
#pragma once

#include "measure/timing.h"

#include <cstddef>
#include <vector>

namespace purlin::measure {

enum class Standing {
  kOpen,
  kSettled,   // the interval of the median is as narrow as wanted
  kHopeless,  // its median cannot be below policy.give_up_ms
};
Standing standing(const std::vector<Sample>& samples, const Policy& policy);

// How many samples to take before looking again; at least 1. Each look costs a synchronisation.
int samples_wanted(std::size_t have, const Policy& policy);

// What one kernel's samples say of the noise of a single one, relative to the median: a robust
// standard deviation that also sees one heavy tail. 0 with fewer than 5 samples.
double relative_noise(const std::vector<Sample>& samples);

// The noise to judge by, from what was seen of each of several kernels: their upper quartile; with
// fewer than 4 twice the largest. 0, not known, with none.
double pooled_noise(std::vector<double> seen);

}  // namespace purlin::measure
