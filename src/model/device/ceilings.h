// SPDX-License-Identifier: Apache-2.0
// Ceilings: what a device can do at most, as FLOP/s per element type and unit and B/s per memory
// level, each with where the figure comes from. Filled from the GPU table, from device attributes
// (analyze/roofline/roofline.h) or by measurement (measure/ceilings/ceilings.h); the document of a
// measurement is docs/formats/ceilings.md. A plain value.
#pragma once

#include "base/json/json.h"
#include "base/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace purlin {

struct Ceiling {
  std::string name;        // "bf16 tensor", "f32", "dram", "l2".
  double peak = 0;         // FLOP/s or B/s.
  std::string provenance;  // "table", "table at 1620 MHz", "measured", "device attributes".
  double clock_mhz = 0;    // The SM clock of the peak; 0 = the peak does not follow the clock.
  double median = 0;       // Of the measurements, of which peak is the highest.
  double sheet = 0;        // The sheet's peak, where a measurement replaced it.
  // What no kernel passes: a micro-benchmark may be beaten, the sheet not.
  double limit() const { return peak > sheet ? peak : sheet; }
};

struct Ceilings {
  std::string device;            // model
  std::vector<Ceiling> compute;  // per dtype and unit
  std::vector<Ceiling> memory;   // per level, DRAM first
  double l2_bytes = 0;           // size of the L2 cache, 0 = unknown; not in documents
  // The ceiling of that element type on that unit; where the device has no tensor unit for it, the
  // vector unit's. nullptr where unknown.
  const Ceiling* compute_for(std::string_view dtype, bool tensor) const;
  const Ceiling* memory_for(std::string_view level) const;  // "dram", "l2"
  bool empty() const { return compute.empty() && memory.empty(); }
};

Json to_json(const Ceilings& ceilings);
Result<Ceilings> ceilings_from_json(const Json& json);

}  // namespace purlin
