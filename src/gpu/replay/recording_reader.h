// SPDX-License-Identifier: Apache-2.0
// The parts that the readers of recordings share; for this folder only. Pure functions.
#pragma once

#include "gpu/replay/recording.h"

namespace purlin::gpu {

// Positive finite numbers of an array; other values are not samples.
std::vector<double> samples_of(const Json& times, double to_ms = 1);
// A duration in s, `to_s` long each unit; 0 for a value that is not a positive number.
double seconds_of(const Json& duration, double to_s);
// Adds a run; one that did not fail and has no samples counts as failed.
void add_run(Recording& recording, RecordedRun run, std::string_view failure);

Result<Recording> read_ktt(const Json& document);

}  // namespace purlin::gpu
