// SPDX-License-Identifier: Apache-2.0
// A sketch's distribution in few bins of equal ratio, for drawing. Pure functions.
#pragma once

#include "base/json/json.h"
#include "model/profile/sketch.h"

#include <vector>

namespace purlin::analyze {

struct Bin {
  double low_ns = 0, high_ns = 0;  // (low, high]
  double count = 0;
};

// At most `max_bins` bins from the shortest to the longest duration; their counts add up to the
// sketch's. Empty for an empty sketch.
std::vector<Bin> histogram(const Sketch& sketch, int max_bins);
// That of at most 40 bins: {"low_ns": […], "high_ns": […], "count": […]}.
Json histogram_json(const Sketch& sketch);

}  // namespace purlin::analyze
