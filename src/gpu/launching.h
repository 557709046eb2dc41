// SPDX-License-Identifier: Apache-2.0
// The parts of a launch that all backends share: config to macros, limits, sampling in chunks.
// Free functions without state, so safe from any thread. Failure: kInvalid names the limit that was
// broken and its value on this device.
#pragma once

#include "base/status.h"
#include "base/time.h"
#include "gpu/device.h"

#include <functional>
#include <string>
#include <vector>

namespace purlin::gpu {

// "-DBM=64" for each parameter; booleans are 0 and 1, reals keep a decimal point.
std::vector<std::string> macro_options(const Config& config);

// Checks a launch before the driver sees it, so that the message says which limit and by how much.
Status check_launch(const DeviceInfo& device, const Launch& launch, std::size_t buffer_alignment);

// Enqueues `count` samples, waits for them and appends them.
using SampleChunk = std::function<Status(int count, std::vector<Sample>& samples)>;

// Takes request.samples in chunks: many in flight, so that the device does not idle between them,
// but never so many that a chunk would run past what is left of the budget.
Result<std::vector<Sample>> sample_in_chunks(const TimingRequest& request, Clock& clock,
                                             const SampleChunk& chunk);

}  // namespace purlin::gpu
