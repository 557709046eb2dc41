// SPDX-License-Identifier: Apache-2.0
// What one launch of a kernel costs in energy, from the device's counter while launches follow each
// other without a pause.
//
// The counter moves every 20 to 100 ms and power takes as long to settle, so this takes the better
// part of a second and is done only where it is asked for. How, and how sure it is:
// docs/concepts/measurement.md. Thread-safety: as the device's, whose energy_mj() is called from a
// thread of its own meanwhile. Failure: kUnavailable where the device does not count, or the
// counter stands still; else the device's own.
#pragma once

#include "measure/timing.h"

#include <vector>

namespace purlin::measure {

// One look at the counter: asking takes milliseconds, and it answered some time in between.
struct EnergyReading {
  double asked_s = 0, answered_s = 0;
  double mj = 0;
};

struct Power {
  double watts = 0;
  double error = 0;  // relative: how uncertain it is when the counter moved
};
// From the first step of the counter after `from_s` to its last: between steps it stands, and what
// it will add is not known. kUnavailable with fewer than two steps.
Result<Power> power_of(const std::vector<EnergyReading>& readings, double from_s);

struct Energy {
  double power_w = 0;    // while launches follow each other
  double energy_mj = 0;  // of a launch: that power for as long as the launch takes
  double error = 0;      // relative, an upper estimate
};
// `timing` is what time_kernel() found for the same launch; `seconds` is how long to measure, once
// the power has settled.
Result<Energy> measure_energy(gpu::Device& device, const gpu::Launch& launch, const Timing& timing,
                              double seconds, const Restore& restore = {},
                              Clock& clock = system_clock());

}  // namespace purlin::measure
