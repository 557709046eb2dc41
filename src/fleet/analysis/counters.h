// SPDX-License-Identifier: Apache-2.0
// Counters: whether a hardware counter that reads exactly 0 is idle or stuck. Exporters have read 0
// for weeks while kernels ran (dcgm-exporter#662): such a counter is unknown, not zero.
//
// Pure, safe on any thread. Cannot fail.
#pragma once

#include <string_view>
#include <vector>

namespace purlin::fleet::analysis {

struct CounterReading {
  double value = 0;
  double busy_ns = 0;  // of kernels, while the counter was read
};
enum class CounterState { kAlive, kIdle, kUnknown };
std::string_view to_text(CounterState state);  // "alive", "idle", "unknown"

// Unknown: not one reading, not a finite one, or all 0 while kernels ran for at least this time.
inline constexpr double kStuckBusyNs = 10e9;
CounterState counter_state(const std::vector<CounterReading>& readings);

}  // namespace purlin::fleet::analysis
