// SPDX-License-Identifier: Apache-2.0
#include "tune/search/transfer/rungs.h"

#include <algorithm>

namespace purlin::tune {

std::size_t Rungs::wins(std::optional<double> log_time) const {
  if (!log_time) return 0;
  return static_cast<std::size_t>(std::count_if(
      rivals_.begin(), rivals_.end(),
      [&](const std::optional<double>& rival) { return !rival || *log_time < *rival; }));
}

}  // namespace purlin::tune
