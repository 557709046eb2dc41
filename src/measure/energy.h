// SPDX-License-Identifier: Apache-2.0
// What one launch of a kernel costs in energy, from the device's counter while launches follow each
// other without a pause.
//
// The counter moves every 20 to 100 ms and power takes as long to settle, so this takes more
// than a second and is done only where it is asked for. How, and how sure it is:
// docs/concepts/measurement.md. Thread-safety: as the device's, whose energy_mj() is called from a
// thread of its own meanwhile. Failure: kUnavailable where the device does not count, or the
// counter stands still; else the device's own.
#pragma once

#include "measure/timing.h"

#include <optional>
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

// Says when to look at a counter that moves in steps, so that two of its steps are seen closely and
// it is left alone between them. Pure: it is told what the readings were.
class EnergyWatch {
 public:
  // Steps from `from_s` on count, and the second is `seconds` or more after the first: as much
  // more, within bounds, as it takes to know the power to 3 %.
  EnergyWatch(double from_s, double seconds) : from_s_(from_s), seconds_(seconds) {}
  // When to look next; nullopt: power() has its answer.
  std::optional<double> next_s() const;
  void saw(const EnergyReading& reading);
  // The mean between the two steps: before and after them it is not known what the counter will
  // add. kUnavailable when it stood still, or went backwards.
  Result<Power> power() const;

 private:
  struct Step {
    double at_s, within_s, mj;
  };
  double from_s_, seconds_;
  std::vector<Step> steps_;              // two at most
  std::optional<EnergyReading> before_;  // the look before, if nothing was left out since
  double looking_since_s_ = 0, looked_s_ = 0;
  bool over_ = false;
};

struct Energy {
  double power_w = 0;    // while launches follow each other
  double energy_mj = 0;  // of a launch: that power for as long as launches took meanwhile
  double error = 0;      // relative, an upper estimate
};
// `timing` is what time_kernel() found for the same launch; `seconds` is how long to measure, once
// the power has settled.
Result<Energy> measure_energy(gpu::Device& device, const gpu::Launch& launch, const Timing& timing,
                              double seconds, const Restore& restore = {},
                              Clock& clock = system_clock());

}  // namespace purlin::measure
