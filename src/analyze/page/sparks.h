// SPDX-License-Identifier: Apache-2.0
// Sparklines: how a row's time is spread over the recording. Pure function.
#pragma once

#include "analyze/report/report.h"
#include "model/profile/profile.h"

#include <cstddef>
#include <vector>

namespace purlin::analyze {

inline constexpr std::size_t kSparkBuckets = 24;

// For each of the report's first rows: its device time in each of kSparkBuckets equal parts of the
// recording, in ns; empty without a timeline.
using Sparks = std::vector<std::vector<double>>;
Sparks sparks_of(const Profile& whole, const Report& report, std::size_t rows);

}  // namespace purlin::analyze
