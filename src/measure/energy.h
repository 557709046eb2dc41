// SPDX-License-Identifier: Apache-2.0
// The energy of one launch of a kernel, from the device's counter while launches follow each other
// without a pause.
//
// The counter moves every 20 to 100 ms and power takes as long to settle. A measurement therefore
// takes more than a second and is made only on request. Method and error:
// docs/concepts/measurement.md. Thread-safety: as the device's; a separate thread calls
// energy_mj(). Failure: kUnavailable if the device does not count energy or the counter does not
// move; else the device's own.
#pragma once

#include "measure/timing.h"

#include <optional>
#include <vector>

namespace purlin::measure {

// One reading of the counter: it takes milliseconds, and the value is from some time in between.
struct EnergyReading {
  double asked_s = 0, answered_s = 0;
  double mj = 0;
};

struct Power {
  double watts = 0;
  double error = 0;  // relative, from the uncertain times at which the counter moved
};

// Schedules the readings of a counter that moves in steps: frequent ones around two of its steps,
// none between them. Pure: the caller passes the readings.
class EnergyWatch {
 public:
  // Steps from `from_s` on count, and the second is `seconds` or more after the first: as much
  // more, within bounds, as it takes to know the power to 3 %.
  EnergyWatch(double from_s, double seconds) : from_s_(from_s), seconds_(seconds) {}
  // The time of the next reading; nullopt: power() has its result.
  std::optional<double> next_s() const;
  void saw(const EnergyReading& reading);
  // The mean power between the two steps. The energy before the first and after the second is not
  // known. kUnavailable if the counter did not move, or went backwards.
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
  double energy_mj = 0;  // of a launch: that power times the launch's mean duration meanwhile
  double error = 0;      // relative, an upper estimate
};
// `timing` is what time_kernel() found for the same launch; `seconds` is how long to measure, once
// the power has settled.
Result<Energy> measure_energy(gpu::Device& device, const gpu::Launch& launch, const Timing& timing,
                              double seconds, const Restore& restore = {},
                              Clock& clock = system_clock());

}  // namespace purlin::measure
