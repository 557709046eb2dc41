// SPDX-License-Identifier: Apache-2.0
// The pace: how long a step takes when nothing is recorded. Recording a launch takes 1 to 2 us,
// which makes the recorded steps of a launch-bound program longer. Capture goes on to count the
// host's waits, memcpy calls and graph launches after recording has ended. The recorded steps show
// how many of them a step makes. Pure functions over values.
#pragma once

#include "analyze/timeline/timeline.h"
#include "model/profile/profile.h"

#include <optional>

namespace purlin::analyze {

struct PacedStep {
  double ns = 0;                   // over all counts
  double low_ns = 0, high_ns = 0;  // of the counts
  double recorded_ns = 0;          // from one step to the next, while it was recorded
  double calls = 0;                // that a step makes
  double seconds = 0;              // of all counts
  std::size_t counts = 0;
};

// Nothing without steps, without counts, and where their calls do not belong to these steps: a step
// would be half as long, or longer than while it was recorded.
std::optional<PacedStep> step_by_pace(const Profile& profile, const TimelineAnalysis& analysis);

// Sets Coverage::step_ns by the pace, with a note, where no clock of the program is known. A step
// that is known and cannot be one of the steps that were found is removed.
void apply_pace(Profile& profile, const TimelineAnalysis& analysis);

}  // namespace purlin::analyze
