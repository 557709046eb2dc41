// SPDX-License-Identifier: Apache-2.0
// Recordings written for other tools: Kernel Tuner's cache, the community's T4 output, CSV, JSON.
//
// docs/formats/tuning-results.md says what each format cannot hold. Pure functions. Failure:
// kInvalid for an unknown format, with those there are.
#pragma once

#include "base/status.h"
#include "gpu/replay/recording.h"

#include <string>
#include <string_view>

namespace purlin::tune {

// "kernel-tuner", "t4", "csv" or "json".
Result<std::string> export_recording(const gpu::Recording& recording, std::string_view format);

}  // namespace purlin::tune
