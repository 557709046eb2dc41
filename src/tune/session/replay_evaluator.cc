// SPDX-License-Identifier: Apache-2.0
#include "tune/session/replay_evaluator.h"

#include "tune/space/build.h"

#include <numeric>

namespace purlin::tune {

Result<Evaluation> ReplayEvaluator::evaluate(const Config& config, const measure::Policy&) {
  PURLIN_ASSIGN(const gpu::RecordedRun* run, recording_.find(config));
  Evaluation evaluation;
  evaluation.config = config;
  evaluation.status = run->status;
  evaluation.message = run->failure;
  evaluation.compile_s = run->compile_s;
  evaluation.verify_s = run->verification_s;
  evaluation.measure_s = run->benchmark_s;
  evaluation.cost_s = run->cost_s();
  if (!evaluation.ok()) return evaluation;
  if (run->samples_ms.empty())
    return error(Code::kInvalid, "the recording has no sample of {}", config.text());
  for (const double ms : run->samples_ms) evaluation.samples.push_back({ms, 0});
  evaluation.time_ms = std::accumulate(run->samples_ms.begin(), run->samples_ms.end(), 0.0) /
                       static_cast<double>(run->samples_ms.size());
  return evaluation;
}

Result<Space> space_of(const gpu::ReplaySpace& recording) {
  std::vector<Parameter> parameters;
  for (const gpu::ReplaySpace::Parameter& recorded : recording.parameters())
    parameters.push_back({recorded.name, recorded.values, std::nullopt});
  std::vector<Config> configs;
  for (const gpu::RecordedRun& run : recording.runs()) configs.push_back(run.config);
  return list_space(parameters, configs);
}

}  // namespace purlin::tune
