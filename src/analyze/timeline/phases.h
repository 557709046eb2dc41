// SPDX-License-Identifier: Apache-2.0
// Phases of one device: start-up with the warm-up steps, steady state, end. Between steps that the
// program marks, other work such as an evaluation is no part of the steady state. Times are the
// timeline's, in ns. Pure functions. Definitions: docs/concepts/timeline.md.
#pragma once

#include "analyze/timeline/device_sweep.h"
#include "analyze/timeline/intervals.h"
#include "analyze/timeline/steps.h"
#include "analyze/timeline/timeline.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::analyze {

struct PhaseCut {
  Interval recording;
  Interval steady;          // the steps without the warm-up; without steps, the device's work
  std::size_t warm_up = 0;  // leading steps outside of `steady`
};
PhaseCut cut_phases(const Timeline& timeline, const DeviceWork& work, Interval recording,
                    const Steps& steps);

// Rare work between two steps that the program marks, longer than half a step: such as an
// evaluation or a checkpoint. In order. A device that does nothing there waits for its input.
std::vector<Interval> find_other_work(const Timeline& timeline, const DeviceWork& work,
                                      const Steps& steps);
// `window` without `others`, in order.
std::vector<Interval> parts_of(Interval window, const std::vector<Interval>& others);

// What an analysis of `choice` covers. Without steps there is no start-up: the steady state.
Interval window_of(const PhaseCut& cut, PhaseChoice choice);

// The phases with their figures, in order; those without length are left out. `process` is the
// device's main process.
std::vector<Phase> measure_phases(const Timeline& timeline, const DeviceWork& work,
                                  std::uint32_t process, const PhaseCut& cut, const Steps& steps);

}  // namespace purlin::analyze
