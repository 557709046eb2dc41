// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/counters.h"

#include <cmath>

namespace purlin::fleet::analysis {

std::string_view to_text(CounterState state) {
  switch (state) {
    case CounterState::kAlive:
      return "alive";
    case CounterState::kIdle:
      return "idle";
    case CounterState::kUnknown:
      break;
  }
  return "unknown";
}

CounterState counter_state(const std::vector<CounterReading>& readings) {
  double busy_ns = 0;
  bool finite = false;
  for (const CounterReading& reading : readings) {
    if (!std::isfinite(reading.value)) continue;
    finite = true;
    if (reading.value != 0) return CounterState::kAlive;
    busy_ns += reading.busy_ns;
  }
  if (!finite || busy_ns >= kStuckBusyNs) return CounterState::kUnknown;
  return CounterState::kIdle;
}

}  // namespace purlin::fleet::analysis
