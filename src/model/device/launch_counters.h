// SPDX-License-Identifier: Apache-2.0
// LaunchCounters: the values of hardware counters for one launch, by names with units. Evaluations
// store them together with the facts of the compiled kernel. Pure. Uncounted values are left out.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

// From metrics of counter_cards.h and the same number of values:
//
//    counted_us                       busy time of the busiest SM while it was counted
//    achieved_occupancy_pct           warps on the active SMs, as a share of their capacity
//    active_sm_pct                    mean busy time of the SMs, as a share of the busiest SM's
//    dram_read_bytes, dram_write_bytes, dram_busy_pct (of the memory's peak)
//    l2_bytes, l1_bytes, l1_hit_pct   traffic of the caches
//    l2_hit_pct                       of the sectors looked up
//    issue_busy_pct, tensor_busy_pct  of the schedulers' slots and of the tensor cores' cycles
//    fma_busy_pct, alu_busy_pct       of those pipes' slots
//    eligible_warps                   of one scheduler that could have issued, per cycle
//    instructions                     of warps
//    shared_wavefronts                of the shared memory's pipe
//    bank_conflicts                   of that pipe; shared_wavefronts includes them
std::map<std::string, double> launch_counters(const std::vector<std::string_view>& metrics,
                                              const std::vector<double>& values);

// Whether a counter of an evaluation was read from the hardware: by these names or a recording's.
bool is_hardware_counter(std::string_view name);

}  // namespace purlin
