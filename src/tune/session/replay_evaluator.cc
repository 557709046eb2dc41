// SPDX-License-Identifier: Apache-2.0
#include "tune/session/replay_evaluator.h"

#include "tune/space/build.h"

#include <algorithm>
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
  evaluation.counters = run->counters;
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
  std::vector<std::uint16_t> rows;
  rows.reserve(recording.runs().size() * parameters.size());
  for (const gpu::RecordedRun& run : recording.runs())
    rows.insert(rows.end(), run.values.begin(), run.values.end());
  return list_space(parameters, std::move(rows));
}

Result<RecordedSpace> space_of(const gpu::ReplaySpace& recording, const KernelSpec& spec) {
  // A recorded config could be launched, so the limits of the recording GPU do not matter here.
  const Scope constants = config_scope(spec, spec.problem, {}, DeviceInfo{});
  PURLIN_ASSIGN(const Space all, build_space(spec.parameters, spec.constraints, constants));
  std::vector<Config> shared;
  RecordedSpace found;
  for (const gpu::RecordedRun& run : recording.runs()) {
    Config config = recording.config(run);
    if (all.find(config)) {
      shared.push_back(std::move(config));
    } else {
      ++found.not_valid;
    }
  }
  if (shared.empty())
    return error(Code::kInvalid,
                 "{}: the recording has none of its configs; are they of the same kernel, with "
                 "the same parameters?",
                 spec.file);
  PURLIN_ASSIGN(found.space, list_space(spec.parameters, shared));
  found.not_recorded = all.size() - std::min(all.size(), found.space.size());
  return found;
}

}  // namespace purlin::tune
