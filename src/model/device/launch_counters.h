// SPDX-License-Identifier: Apache-2.0
// LaunchCounters: what hardware counters said of one launch, by names with units, as evaluations
// keep them beside the facts of the compiled kernel. Pure. What was not counted is left out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

// From metrics of counter_cards.h and their values, as many:
//   counted_us                       how long the busiest SM worked while it was counted
//   achieved_occupancy_pct           warps of the active SMs, of what they can hold
//   active_sm_pct                    how long the mean SM worked, of the busiest one's time
//   dram_read_bytes, dram_write_bytes, dram_busy_pct (of the memory's peak)
//   l2_bytes, l1_bytes, l1_hit_pct   what passed the caches
//   l2_hit_pct                       of the sectors looked up
//   issue_busy_pct, tensor_busy_pct  of the schedulers' slots and of the tensor cores' cycles
//   fma_busy_pct, alu_busy_pct       of those pipes' slots
//   eligible_warps                   that could have issued, of a scheduler's, in each cycle
//   instructions                     of warps
//   shared_wavefronts, bank_conflicts  of the shared memory's pipe; the latter are among the former
std::map<std::string, double> launch_counters(const std::vector<std::string_view>& metrics,
                                              const std::vector<double>& values);

// Whether a counter of an evaluation was read from the hardware: by these names or a recording's.
bool is_hardware_counter(std::string_view name);

}  // namespace purlin
