// SPDX-License-Identifier: Apache-2.0
// The figures of a launch from hardware counters: FLOPs, bytes at each level of memory, how busy
// units were. Reads the names of Nsight Compute and CUPTI (also the older nvprof's), and AMD's
// rocprof, in base units (bytes, hertz, inst). A figure without its counter is absent or 0. Pure
// functions.
#pragma once

#include "model/profile/profile.h"

#include <optional>
#include <string>
#include <vector>

namespace purlin::analyze {

struct CounterFigures {         // of one launch
  std::optional<double> flops;  // all units; an FMA is two
  std::string unit;             // which did most of them, as ceilings are named: "bf16 tensor"
  double unit_flops = 0;        // of that one
  std::optional<double> dram_bytes, l2_bytes;
  std::optional<double> dram_peak;  // B/s, as the tool knows the device
  double clock_mhz = 0;             // of the SMs while it ran; 0 = not read
  // Shares of peak, 0 … 1.
  std::optional<double> compute_busy, memory_busy, dram_busy, tensor_busy, occupancy;
  bool empty() const;
};

// Counters are means per launch; `duration_ns` of the same launches turns rates into amounts.
CounterFigures read_counters(const std::vector<Counter>& counters, double duration_ns);

}  // namespace purlin::analyze
