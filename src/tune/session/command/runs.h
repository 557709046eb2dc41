// SPDX-License-Identifier: Apache-2.0
// The commands of one config: built in its folder, run, verified. No threads and no policy; the
// evaluator decides when (evaluator.h).
//
// Immutable after construction, except for the digest of the default config's outputs. Several
// threads may build at once; one at a time runs and verifies. Failure: kCancelled when `is_over`
// ended a command; what is wrong with the config is in the Step.
#pragma once

#include "base/status.h"
#include "model/evaluation.h"
#include "model/spec/spec.h"

#include <functional>
#include <string>
#include <vector>

namespace purlin::tune {

// How one command of a config ended.
struct Step {
  EvaluationStatus status = EvaluationStatus::kOk;
  std::string message;  // why not ok
  double seconds = 0;
  std::string out{};  // its standard output
  bool ok() const { return status == EvaluationStatus::kOk; }
};

class CommandRuns {
 public:
  // `root`: the folder of all working folders.
  // `usual`: the default config at the problem.
  CommandRuns(const KernelSpec& spec, const ProblemShape& problem, Config usual, std::string root,
              double timeout_s);

  using IsOver = std::function<bool()>;
  Result<Step> build(const Config& config, const IsOver& is_over) const;
  // One run, with the times it printed, in ms.
  Result<Step> run(const Config& config, const IsOver& is_over,
                   std::vector<double>& times_ms) const;
  // After a run. `ran`: that run, for what it printed. The digest of the default config, which is
  // built and run where it is needed first, is that of the outputs.
  Result<Step> verify(const Config& config, const Step& ran, const IsOver& is_over);
  void remove(const Config& config) const;

 private:
  std::string folder_of(const Config& config) const;
  Result<Step> execute(const Config& config, const std::vector<std::string>& words,
                       EvaluationStatus failure, const IsOver& is_over) const;
  Result<std::vector<double>> times_of(const Step& step, const std::string& output) const;
  Result<std::string> digest_of(const Config& config, const Step& ran) const;
  Result<Step> compare_outputs(const Config& config, const Step& ran, const IsOver& is_over);

  const KernelSpec& spec_;
  const CommandKernel& command_;
  ProblemShape problem_;
  Config usual_;
  std::string root_;
  double timeout_s_;
  std::string expected_;  // digest; "" = not known yet
};

}  // namespace purlin::tune
