// SPDX-License-Identifier: Apache-2.0
// Kernel Tuner's cache files.
#include "base/text.h"
#include "gpu/replay/recording_reader.h"

#include <algorithm>

namespace purlin::gpu {
namespace {

bool is_kernel_tuner_field(std::string_view key) {
  for (const std::string_view known :
       {"time", "times", "compile_time", "benchmark_time", "verification_time", "framework_time",
        "strategy_time", "timestamp", "__error__"})
    if (key == known) return true;
  return false;
}

// The kind of failure. Kernel Tuner writes its word into "__error__", into the time, or into any
// other member, such as a metric that could not be computed.
std::string kernel_tuner_error(const Json& entry) {
  if (const std::string& named = entry["__error__"].as_string(); !named.empty()) return named;
  for (const auto& [name, value] : entry.members())
    if (const std::string& word = value.as_string();
        word == "InvalidConfig" || ends_with(word, "FailedConfig"))
      return word;
  return entry["time"].as_string();
}

ProblemShape problem_of(const Json& size) {
  ProblemShape problem;
  const Json sizes = size.is_array() ? size : Json::array({size});
  const char* const names[] = {"x", "y", "z"};
  for (std::size_t i = 0; i < std::min<std::size_t>(sizes.size(), 3); ++i)
    if (const std::int64_t extent = sizes.items()[i].as_int(); extent > 0)
      problem.set(names[i], extent);
  return problem;
}

class KernelTunerReader : public RecordingReader {
 public:
  Result<Recording> head(const Json& document) override {
    Recording recording;
    recording.format = "kernel-tuner";
    recording.device = document["device_name"].as_string();
    recording.kernel = document["kernel_name"].as_string();
    recording.problem = problem_of(document["problem_size"]);
    for (const Json& key : document["tune_params_keys"].items()) {
      Recording::Parameter parameter{key.as_string(), {}};
      const Json* values = document["tune_params"].find(parameter.name);
      if (values == nullptr)
        return error(Code::kInvalid, "\"tune_params\" lacks the parameter '{}'", parameter.name);
      for (const Json& json : values->items()) {
        PURLIN_ASSIGN(Value value, value_from_json(json));
        parameter.values.push_back(std::move(value));
      }
      recording.parameters.push_back(std::move(parameter));
    }
    if (recording.parameters.empty())
      return error(Code::kInvalid, "\"tune_params_keys\" lists no parameters");
    parameters_ = recording.parameters;
    return recording;
  }

  Status add(const Json& piece, RecordingBuilder& to) override {
    for (const auto& [key, entry] : piece.members())
      if (const Status status = add_entry(entry, to); !status.is_ok())
        return status.with_context(fmt::format("\"cache\" entry \"{}\"", key));
    return Status::ok();
  }

 private:
  Status add_entry(const Json& entry, RecordingBuilder& to) const {
    PURLIN_ASSIGN(const Config config, config_of(parameters_, entry));
    RecordedRun run;
    run.compile_s = seconds_of(entry["compile_time"], 1e-3);
    run.benchmark_s = seconds_of(entry["benchmark_time"], 1e-3);
    run.verification_s = seconds_of(entry["verification_time"], 1e-3);
    run.overhead_s =
        seconds_of(entry["framework_time"], 1e-3) + seconds_of(entry["strategy_time"], 1e-3);
    run.timestamp = entry["timestamp"].as_string();
    const Json& time = entry["time"];
    run.samples_ms = samples_of(entry["times"]);
    if (run.samples_ms.empty() && time.is_number())
      run.samples_ms = samples_of(Json::array({time}));
    for (const auto& [name, value] : entry.members())
      if (value.is_number() && !is_kernel_tuner_field(name) && !config.find(name) &&
          run.metrics.size() < kMaxMetrics)
        run.metrics.emplace_back(name, value.as_double());
    set_failure(run, kernel_tuner_error(entry));
    return to.add(std::move(run), config);
  }

  std::vector<Recording::Parameter> parameters_;
};

}  // namespace

std::unique_ptr<RecordingReader> make_kernel_tuner_reader() {
  return std::make_unique<KernelTunerReader>();
}

}  // namespace purlin::gpu
