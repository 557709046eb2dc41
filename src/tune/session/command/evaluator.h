// SPDX-License-Identifier: Apache-2.0
// CommandEvaluator: evaluations of a spec's [command]. Builds run in parallel ahead of the
// measurement; what is timed runs alone.
//
// Each config has a separate working folder, in which its commands run. Folders of slow configs
// are removed, those of the others at the end. A command is started directly, in its own process
// group; the group is killed at the time limit and when the session stops. Thread-safety: as
// Evaluator; builds have separate threads. Failure: what goes wrong with a config is its
// Evaluation; a Status is kCancelled, or kIo for the folders.
#pragma once

#include "base/status.h"
#include "model/spec/spec.h"
#include "tune/session/build_ahead.h"
#include "tune/session/evaluator.h"

#include <memory>
#include <string>

namespace purlin::tune {

class CommandEvaluator : public Evaluator {
 public:
  // REQUIRES: spec.command.
  static Result<std::unique_ptr<CommandEvaluator>> start(const KernelSpec& spec,
                                                         const ProblemShape& problem,
                                                         const DeviceInfo& device,
                                                         const PoolOptions& options);
  ~CommandEvaluator() override;

  const DeviceInfo& device() const override;
  bool executes() const override { return true; }
  std::size_t lookahead() const override;
  std::optional<std::size_t> first_built(const std::vector<const Config*>& configs) override;
  void announce(const Config& config) override;
  void end_announced() override;
  Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) override;

 private:
  class Impl;
  explicit CommandEvaluator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The processor as a device, for commands that need no other.
DeviceInfo host_device();

}  // namespace purlin::tune
