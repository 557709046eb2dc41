// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/scenario.h"

#include <algorithm>

namespace purlin::analyze {

Interval3 bounded(Interval3 interval, double max) {
  interval.high = std::min(std::max({interval.high, interval.mid, interval.low}), max);
  interval.mid = std::clamp(interval.mid, std::min(interval.low, interval.high), interval.high);
  interval.low = std::min(interval.low, interval.mid);
  return interval;
}

}  // namespace purlin::analyze
