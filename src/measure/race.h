// SPDX-License-Identifier: Apache-2.0
// Race: decides when a kernel has enough timing samples.
//
// Most configs of a search lose, and one or two samples show it. The distance at which a config
// cannot win depends on the scatter of one kernel's samples on this device, known from the kernels
// timed before. Pure functions, shared by the stopwatch and by the benchmark that checks them
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

// The noise of a single sample of one kernel, relative to the median: a robust standard deviation
// that includes one heavy tail. 0 with fewer than 5 samples.
double relative_noise(const std::vector<Sample>& samples);

// The noise to assume, from the noise of several kernels: their upper quartile; with fewer than 4
// kernels twice the largest. 0 (not known) without any, at most kMaxNoise.
double pooled_noise(std::vector<double> seen);

}  // namespace purlin::measure
