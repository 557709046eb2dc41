// SPDX-License-Identifier: Apache-2.0
#include "gpu/replay/recording.h"

#include "base/gzip.h"
#include "base/json/json_dialect.h"
#include "base/text.h"
#include "base/time.h"
#include "gpu/replay/recording_reader.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace purlin::gpu {
namespace {

constexpr std::size_t kMaxRecordingBytes = std::size_t{1} << 30;
constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxSamples = 100'000;  // of one config
constexpr std::size_t kMaxMetrics = 64;

// The parameters of `entry`, in the recording's order.
Status take_config(const Recording& recording, const Json& entry, RecordedRun& run) {
  for (const Recording::Parameter& parameter : recording.parameters) {
    const Json* json = entry.find(parameter.name);
    if (json == nullptr) return error(Code::kInvalid, "lacks the parameter '{}'", parameter.name);
    PURLIN_ASSIGN(Value value, value_from_json(*json));
    run.config.set(parameter.name, std::move(value));
  }
  return Status::ok();
}

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

Result<Recording> read_kernel_tuner(const Json& document) {
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
  for (const auto& [key, entry] : document["cache"].members()) {
    RecordedRun run;
    if (const Status status = take_config(recording, entry, run); !status.is_ok())
      return status.with_context(fmt::format("\"cache\" entry \"{}\"", key));
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
      if (value.is_number() && !is_kernel_tuner_field(name) && !run.config.find(name) &&
          run.metrics.size() < kMaxMetrics)
        run.metrics.emplace_back(name, value.as_double());
    add_run(recording, std::move(run), kernel_tuner_error(entry));
  }
  return recording;
}

// Milliseconds per unit of a result's times. The schema means ms; converters keep the unit of the
// tuner and state it at the measurement that the times are of.
Result<double> t4_unit_ms(const Json& document, const Json& result) {
  const Json* stated = nullptr;
  for (const Json& measurement : result["measurements"].items()) {
    const Json& unit = measurement["unit"];
    const std::string& name = measurement["name"].as_string();
    bool objective = name == "time";
    for (const Json& wanted : result["objectives"].items())
      objective = objective || name == wanted.as_string();
    const bool is_time = ns_per_unit(unit.as_string()).has_value();
    if (objective && name == "time" && !is_time && !unit.as_string().empty())
      return error(Code::kInvalid, "the time has the unit '{}', which is no unit of time",
                   unit.as_string());
    if (is_time && (objective || stated == nullptr)) stated = &unit;
    if (is_time && objective) break;
  }
  const Json& metadata = document["metadata"];
  for (const char* key : {"time_unit", "timeunit", "TimeUnit"})
    if (stated == nullptr && metadata[key].is_string()) stated = &metadata[key];
  if (stated == nullptr) return 1.0;
  const std::optional<double> ns = ns_per_unit(stated->as_string());
  if (!ns)
    return error(Code::kInvalid, "\"metadata\" has the unit of time '{}', which is not known",
                 stated->as_string());
  return *ns * 1e-6;
}

Result<Recording> read_t4(const Json& document) {
  Recording recording;
  recording.format = "t4";
  std::size_t number = 0;
  for (const Json& result : document["results"].items()) {
    const Json& config = result["configuration"];
    if (recording.parameters.empty())
      for (const auto& [name, value] : config.members()) recording.parameters.push_back({name, {}});
    if (recording.parameters.empty())
      return error(Code::kInvalid, "the first of \"results\" has no \"configuration\"");
    RecordedRun run;
    if (const Status status = take_config(recording, config, run); !status.is_ok())
      return status.with_context(fmt::format("result {}", number));
    ++number;
    const Json& times = result["times"];
    const Result<double> unit_ms = t4_unit_ms(document, result);
    if (!unit_ms.is_ok())
      return unit_ms.status().with_context(fmt::format("result {}", number - 1));
    const double unit_s = *unit_ms * 1e-3;
    // The schema says compilation_time; what is in circulation says compilation.
    run.compile_s = seconds_of(
        times.find("compilation") != nullptr ? times["compilation"] : times["compilation_time"],
        unit_s);
    run.verification_s = seconds_of(times["validation"], unit_s);
    run.overhead_s =
        seconds_of(times["framework"], unit_s) + seconds_of(times["search_algorithm"], unit_s);
    run.samples_ms = samples_of(times["runtimes"], *unit_ms);
    run.benchmark_s = 1e-3 * std::accumulate(run.samples_ms.begin(), run.samples_ms.end(), 0.0);
    run.timestamp = result["timestamp"].as_string();
    for (const Json& measurement : result["measurements"].items())
      if (const std::string& name = measurement["name"].as_string();
          !name.empty() && name != "time" && measurement["value"].is_number() &&
          run.metrics.size() < kMaxMetrics)
        run.metrics.emplace_back(name, measurement["value"].as_double());
    const std::string& invalidity = result["invalidity"].as_string();
    add_run(recording, std::move(run), invalidity == "correct" ? "" : invalidity);
  }
  collect_values(recording);
  return recording;
}

// A parameter's equal values, such as 1, 1.0 and true, become the listed one.
void unify_values(Recording& recording) {
  for (const Recording::Parameter& parameter : recording.parameters) {
    std::unordered_map<std::string, Value> chosen;
    for (const Value& value : parameter.values) chosen.try_emplace(value_key(value), value);
    for (RecordedRun& run : recording.runs) {
      const Value* value = run.config.find(parameter.name);
      if (value == nullptr) continue;
      const auto [at, added] = chosen.try_emplace(value_key(*value), *value);
      if (!added && !(at->second == *value)) run.config.set(parameter.name, at->second);
    }
  }
}

bool less(const Value& a, const Value& b) {
  const auto x = to_double(a), y = to_double(b);
  if (x.is_ok() && y.is_ok()) return *x < *y;
  if (x.is_ok() != y.is_ok()) return x.is_ok();  // numbers before texts
  return to_text(a) < to_text(b);
}

}  // namespace

double RecordedRun::time_ms() const {
  return std::accumulate(samples_ms.begin(), samples_ms.end(), 0.0) /
         static_cast<double>(samples_ms.size());
}

EvaluationStatus status_from_failure(std::string_view failure) {
  if (failure.empty()) return EvaluationStatus::kOk;
  if (failure == "InvalidConfig" || failure == "constraints" || failure == "DeviceLimitsExceeded")
    return EvaluationStatus::kInvalid;
  if (failure == "CompilationFailedConfig" || failure == "compile" ||
      failure == "CompilationFailed")
    return EvaluationStatus::kCompile;
  if (failure == "correctness" || failure == "ValidationFailed") return EvaluationStatus::kWrong;
  if (failure == "timeout") return EvaluationStatus::kTimeout;
  return EvaluationStatus::kLaunch;  // "RuntimeFailedConfig", "runtime", "ComputationFailed"
}

std::string_view kernel_tuner_failure(EvaluationStatus status) {
  switch (status) {
    case EvaluationStatus::kOk:
      return "";
    case EvaluationStatus::kInvalid:
      return "InvalidConfig";
    case EvaluationStatus::kCompile:
      return "CompilationFailedConfig";
    default:
      return "RuntimeFailedConfig";
  }
}

std::string_view t4_invalidity(EvaluationStatus status) {
  switch (status) {
    case EvaluationStatus::kOk:
      return "correct";
    case EvaluationStatus::kInvalid:
      return "constraints";
    case EvaluationStatus::kCompile:
      return "compile";
    case EvaluationStatus::kWrong:
    case EvaluationStatus::kOutOfBounds:
      return "correctness";
    case EvaluationStatus::kTimeout:
      return "timeout";
    default:
      return "runtime";
  }
}

std::vector<double> samples_of(const Json& times, double to_ms) {
  std::vector<double> samples;
  for (const Json& time : times.items()) {
    if (samples.size() == kMaxSamples) break;
    if (const double ms = time.as_double() * to_ms; ms > 0 && std::isfinite(ms))
      samples.push_back(ms);
  }
  return samples;
}

double seconds_of(const Json& duration, double to_s) {
  const double value = duration.as_double() * to_s;
  return value > 0 && std::isfinite(value) ? value : 0;
}

void add_run(Recording& recording, RecordedRun run, std::string_view failure) {
  if (!failure.empty() || run.samples_ms.empty()) {
    run.failure = failure.empty() ? "no samples were recorded" : failure;
    run.status = failure.empty() ? EvaluationStatus::kLaunch : status_from_failure(failure);
    run.samples_ms.clear();
  }
  recording.runs.push_back(std::move(run));
}

bool is_recording(const Json& document) {
  return document["cache"].is_object() || document["results"].is_array() ||
         document["Results"].is_array();
}

Result<Recording> recording_from_json(const Json& document) {
  if (!is_recording(document))
    return error(Code::kInvalid,
                 "neither a Kernel Tuner cache (no \"cache\" object) nor a T4 output (no "
                 "\"results\" array) nor KTT's (no \"Results\" array)");
  PURLIN_ASSIGN(Recording recording, document["cache"].is_object()    ? read_kernel_tuner(document)
                                     : document["results"].is_array() ? read_t4(document)
                                                                      : read_ktt(document));
  if (recording.runs.empty()) return error(Code::kInvalid, "it records no config");
  unify_values(recording);
  return recording;
}

Result<TunerJson> parse_tuner_json(std::string_view text) {
  const Json::Limits limits{kMaxRecordingBytes, kMaxDepth};
  Result<Json> strict = Json::parse(text, limits);
  if (strict.is_ok()) return TunerJson{std::move(strict).value(), ""};
  if (text.size() > kMaxRecordingBytes) return strict.status();
  const std::string valid = without_non_finite(text);
  if (Result<Json> finite = Json::parse(valid, limits); finite.is_ok())
    return TunerJson{std::move(finite).value(), ""};
  constexpr std::size_t kConfigs = 2;  // the members of "cache", the items of "results"
  const std::string closed = closed_json(valid, kConfigs);
  if (closed.empty()) return strict.status();
  Result<Json> document = Json::parse(closed, limits);
  if (!document.is_ok() || !is_recording(*document)) return strict.status();
  return TunerJson{std::move(document).value(),
                   "the file has no end: its tuner was stopped, or has not finished; the configs "
                   "that are complete are read"};
}

Result<Recording> parse_recording(std::string_view text) {
  if (is_gzip(text)) {
    PURLIN_ASSIGN(const std::string plain, gunzip(text, kMaxRecordingBytes));
    return parse_recording(plain);
  }
  PURLIN_ASSIGN(const TunerJson read, parse_tuner_json(text));
  PURLIN_ASSIGN(Recording recording, recording_from_json(read.document));
  recording.note = read.note;
  return recording;
}

void collect_values(Recording& recording) {
  for (Recording::Parameter& parameter : recording.parameters) {
    if (!parameter.values.empty()) continue;
    std::unordered_map<std::string, std::size_t> place;
    for (const RecordedRun& run : recording.runs) {
      const Value* value = run.config.find(parameter.name);
      if (value == nullptr) continue;
      const auto [at, added] = place.try_emplace(value_key(*value), parameter.values.size());
      if (added)
        parameter.values.push_back(*value);
      else if (std::holds_alternative<std::int64_t>(*value))
        parameter.values[at->second] = *value;
    }
    std::sort(parameter.values.begin(), parameter.values.end(), less);
  }
}

std::string value_key(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  if (const auto* real = std::get_if<double>(&value);
      real != nullptr && *real == std::floor(*real) && std::abs(*real) < 1e15)
    return std::to_string(static_cast<std::int64_t>(*real));
  return to_text(value);
}

}  // namespace purlin::gpu
