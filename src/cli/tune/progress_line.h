// SPDX-License-Identifier: Apache-2.0
// The progress of a tuning session on one line: what it does now, the best so far, failures, and
// the time that is left. Pure function.
#pragma once

#include "tune/session/session.h"

#include <cstddef>
#include <string>

namespace purlin::cli {

// `total`: the most evaluations there can be.
std::string progress_line(const tune::SessionState& state, const tune::Budget& budget,
                          std::size_t total);

}  // namespace purlin::cli
