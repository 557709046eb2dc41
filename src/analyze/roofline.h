// SPDX-License-Identifier: Apache-2.0
// Roofline: how near a kernel comes to what its device can do, and what holds it back. Work is
// FLOPs and bytes per launch, from counters where they were read, else from a model of the problem
// shape (analyze/work.h); ceilings are the GPU table's dense figures at the clock observed, or
// measured. Williams, Waterman, Patterson, CACM 2009. Utilisation is against the ceiling that
// binds. Pure functions.
#pragma once

#include "base/json.h"
#include "model/device.h"
#include "model/profile.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

enum class Bound { kMemory, kCompute, kLatency, kUnknown };
std::string_view to_text(Bound bound);  // "memory"

enum class Provenance { kNone, kCounter, kShapeModel };
std::string_view to_text(Provenance provenance);  // "counter", "shape_model", "none"

struct Ceiling {
  std::string name;        // "bf16 tensor", "f32", "dram", "l2"
  double peak = 0;         // FLOP/s or B/s
  std::string provenance;  // "table", "table at 1620 MHz", "measured", "device attributes"
};

struct Ceilings {
  std::string device;            // model
  std::vector<Ceiling> compute;  // per dtype and unit
  std::vector<Ceiling> memory;   // per level, DRAM first
  const Ceiling* compute_for(std::string_view dtype, bool tensor) const;
};

struct Roof {                   // of one report row
  double flops = 0, bytes = 0;  // per launch; 0 = unknown
  Provenance flops_from = Provenance::kNone, bytes_from = Provenance::kNone;
  double model_flops = 0, model_bytes = 0;  // the shape model's, also where counters were read
  double flops_per_s = 0, bytes_per_s = 0;  // achieved, over the mean duration
  double intensity = 0;                     // FLOP/B
  double attainable_flops_per_s = 0;        // min(peak, intensity * bandwidth)
  double utilization = 0;                   // of the binding ceiling; 0 = unknown
  std::string ceiling;                      // name of the binding one
  Bound bound = Bound::kUnknown;
  std::string evidence;  // why: "71 % of DRAM bandwidth, 3 % of f32 (counters)"
  double occupancy_theoretical = 0, occupancy_achieved = 0;  // share of warp slots; 0 = unknown
  std::string occupancy_limiter;                             // "registers", "shared memory", …
};

}  // namespace purlin::analyze
