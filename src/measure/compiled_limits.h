// SPDX-License-Identifier: Apache-2.0
// Whether a compiled config is worth a launch, by what it takes of a multiprocessor.
//
// Two rules: a launch that the architecture cannot run is out, and a config that spills heavily is
// out too. A thread's stack also has the arrays of the source, which every config has. A config
// therefore spills heavily if its stack is larger than the default config's by more than all
// registers of a thread hold. Pure functions. Failure: kInvalid states the rule and the figures.
#pragma once

#include "base/status.h"
#include "gpu/device.h"
#include "model/device/launch.h"

#include <cstdint>
#include <optional>

namespace purlin::measure {

inline constexpr std::int64_t kHeavySpillBytes = 1024;  // of each thread: 256 registers

// Of architectures that are not known here, none is beyond a limit.
Status check_launchable(const gpu::Resources& resources, const LaunchShape& launch,
                        const DeviceInfo& device);
// `usual`: the local bytes of the default config; nullopt while they are not known.
Status check_spills(const gpu::Resources& resources, std::optional<std::int64_t> usual);

}  // namespace purlin::measure
