// SPDX-License-Identifier: Apache-2.0
// ReplayEvaluator: evaluations read from a recorded space, with their recorded samples and costs.
//
// A config's time is the mean of its recorded samples, the objective that recordings and the
// community's score use; all its samples are served, for the cost that was recorded covers them
// all. Thread-safety: belongs to the session's thread.
#pragma once

#include "gpu/replay/replay_space.h"
#include "tune/session/evaluator.h"
#include "tune/space/space.h"

namespace purlin::tune {

class ReplayEvaluator : public Evaluator {
 public:
  // `recording` outlives this.
  ReplayEvaluator(const gpu::ReplaySpace& recording, DeviceInfo device)
      : recording_(recording), device_(std::move(device)) {}
  const DeviceInfo& device() const override { return device_; }
  bool executes() const override { return false; }
  Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) override;

 private:
  const gpu::ReplaySpace& recording_;
  DeviceInfo device_;
};

// The configs of a recording, failed ones included.
Result<Space> space_of(const gpu::ReplaySpace& recording);

// Those of a spec's space that the recording has. What the two do not share is counted.
struct RecordedSpace {
  Space space;
  std::size_t not_recorded = 0;  // valid by the spec, and not in the recording
  std::size_t not_valid = 0;     // in the recording, and not valid by the spec
};
Result<RecordedSpace> space_of(const gpu::ReplaySpace& recording, const KernelSpec& spec);

}  // namespace purlin::tune
