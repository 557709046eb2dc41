// SPDX-License-Identifier: Apache-2.0
// KTT's JSON output, versions 2.0 to 2.2.
#include "base/time.h"
#include "gpu/replay/recording_reader.h"

namespace purlin::gpu {
namespace {

Result<double> seconds_per_unit(const std::string& unit) {
  if (const std::optional<double> ns = ns_per_unit(unit)) return *ns * 1e-9;
  return error(Code::kInvalid,
               "\"Metadata\" has the TimeUnit '{}', which is none of Nanoseconds, Microseconds, "
               "Milliseconds, Seconds",
               unit);
}

Status take_config(const Json& result, Recording& recording, RecordedRun& run) {
  const bool first = recording.parameters.empty();
  for (const Json& pair : result["Configuration"].items()) {
    PURLIN_ASSIGN(const std::string name, pair.string_at("Name"));
    const Json* json = pair.find("Value");
    if (json == nullptr) return error(Code::kInvalid, "the parameter '{}' has no Value", name);
    PURLIN_ASSIGN(Value value, value_from_json(*json));
    run.config.set(name, std::move(value));
    if (first) recording.parameters.push_back({name, {}});
  }
  if (recording.parameters.empty())
    return error(Code::kInvalid, "has no \"Configuration\" with parameters");
  for (const Recording::Parameter& parameter : recording.parameters)
    if (run.config.find(parameter.name) == nullptr)
      return error(Code::kInvalid, "lacks the parameter '{}'", parameter.name);
  return Status::ok();
}

}  // namespace

Result<Recording> read_ktt(const Json& document) {
  const Json& metadata = document["Metadata"];
  PURLIN_ASSIGN(const double unit_s, seconds_per_unit(metadata["TimeUnit"].as_string()));
  Recording recording;
  recording.format = "ktt";
  recording.device = metadata["Device"].as_string();
  recording.toolkit = metadata["ComputeApi"].as_string();
  std::size_t number = 0;
  for (const Json& result : document["Results"].items()) {
    RecordedRun run;
    if (const Status status = take_config(result, recording, run); !status.is_ok())
      return status.with_context(fmt::format("\"Results\" {}", number));
    ++number;
    if (recording.kernel.empty()) recording.kernel = result["KernelName"].as_string();
    run.timestamp = metadata["Timestamp"].as_string();
    // KTT runs a config once. All other time, compiling and verifying included, is its overhead.
    run.samples_ms = samples_of(Json::array({result["TotalDuration"]}), unit_s * 1e3);
    run.benchmark_s = seconds_of(result["TotalDuration"], unit_s);
    run.overhead_s = seconds_of(result["TotalOverhead"], unit_s);
    // For a config of several kernels, the counters of the first kernel: a sum has no meaning.
    const Json::Array& kernels = result["ComputationResults"].items();
    if (!kernels.empty())
      for (const Json& counter : kernels.front()["ProfilingData"]["Counters"].items())
        if (const Json* value = counter.find("Value"); value != nullptr && value->is_number())
          run.counters[counter["Name"].as_string()] = value->as_double();
    const std::string& state = result["Status"].as_string();
    add_run(recording, std::move(run), state == "Ok" ? "" : state.empty() ? "no Status" : state);
  }
  collect_values(recording);
  return recording;
}

}  // namespace purlin::gpu
