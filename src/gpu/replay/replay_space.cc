// SPDX-License-Identifier: Apache-2.0
#include "gpu/replay/replay_space.h"

#include "base/files.h"
#include "base/gzip.h"
#include "base/json.h"

#include <algorithm>
#include <cmath>

namespace purlin::gpu {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr std::size_t kMaxSamples = 100'000;  // of one config

// Equal values have equal text, whatever their type: recordings mix 1, 1.0 and true.
std::string value_key(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  if (const auto* real = std::get_if<double>(&value);
      real != nullptr && *real == std::floor(*real) && std::abs(*real) < 1e15)
    return std::to_string(static_cast<std::int64_t>(*real));
  return to_text(value);
}

EvaluationStatus status_of(std::string_view failure) {
  if (failure == "InvalidConfig" || failure == "constraints") return EvaluationStatus::kInvalid;
  if (failure == "CompilationFailedConfig" || failure == "compile")
    return EvaluationStatus::kCompile;
  if (failure == "correctness") return EvaluationStatus::kWrong;
  if (failure == "timeout") return EvaluationStatus::kTimeout;
  return EvaluationStatus::kLaunch;  // "RuntimeFailedConfig", "runtime"
}

// "times" and the like: what is not a positive number is no sample.
std::vector<double> samples_of(const Json& times) {
  std::vector<double> samples;
  for (const Json& time : times.items()) {
    if (samples.size() == kMaxSamples) break;
    if (const double ms = time.as_double(); ms > 0 && std::isfinite(ms)) samples.push_back(ms);
  }
  return samples;
}

double seconds(const Json& ms) {
  const double value = ms.as_double() * 1e-3;
  return value > 0 && std::isfinite(value) ? value : 0;
}

}  // namespace

// Builds a space from either format.
class ReplayReader {
 public:
  Status read(const Json& document) {
    if (document["cache"].is_object()) return read_kernel_tuner(document);
    if (document["results"].is_array()) return read_t4(document);
    return error(Code::kInvalid,
                 "neither a Kernel Tuner cache (no \"cache\" object) nor a T4 output (no "
                 "\"results\" array)");
  }
  ReplaySpace space;

 private:
  Status read_kernel_tuner(const Json& document) {
    space.device_ = document["device_name"].as_string();
    space.kernel_ = document["kernel_name"].as_string();
    for (const Json& key : document["tune_params_keys"].items()) {
      ReplaySpace::Parameter parameter{key.as_string(), {}};
      const Json* values = document["tune_params"].find(parameter.name);
      if (values == nullptr)
        return error(Code::kInvalid, "\"tune_params\" lacks the parameter '{}'", parameter.name);
      for (const Json& json : values->items()) {
        PURLIN_ASSIGN(Value value, value_from_json(json));
        parameter.values.push_back(std::move(value));
      }
      space.parameters_.push_back(std::move(parameter));
    }
    if (space.parameters_.empty())
      return error(Code::kInvalid, "\"tune_params_keys\" lists no parameters");
    for (const auto& [key, entry] : document["cache"].members()) {
      RecordedRun run;
      if (const Status status = take_config(entry, run); !status.is_ok())
        return status.with_context(fmt::format("\"cache\" entry \"{}\"", key));
      run.compile_s = seconds(entry["compile_time"]);
      run.benchmark_s = seconds(entry["benchmark_time"]);
      run.verification_s = seconds(entry["verification_time"]);
      run.overhead_s = seconds(entry["framework_time"]) + seconds(entry["strategy_time"]);
      // A failed config has the kind of failure where others have their time.
      const Json& time = entry["time"];
      run.samples_ms = samples_of(entry["times"]);
      if (run.samples_ms.empty() && time.is_number())
        run.samples_ms = samples_of(Json::array({time}));
      PURLIN_TRY(add(std::move(run), time.as_string()));
    }
    return check_not_empty();
  }

  Status read_t4(const Json& document) {
    for (const Json& result : document["results"].items()) {
      const Json& config = result["configuration"];
      if (space.parameters_.empty())
        for (const auto& [name, value] : config.members()) space.parameters_.push_back({name, {}});
      if (space.parameters_.empty())
        return error(Code::kInvalid, "the first of \"results\" has no \"configuration\"");
      RecordedRun run;
      if (const Status status = take_config(config, run); !status.is_ok())
        return status.with_context(fmt::format("result {}", space.runs_.size()));
      const Json& times = result["times"];
      run.compile_s = seconds(times["compilation"]);
      run.verification_s = seconds(times["validation"]);
      run.overhead_s = seconds(times["framework"]) + seconds(times["search_algorithm"]);
      run.samples_ms = samples_of(times["runtimes"]);
      double sum_ms = 0;
      for (const double ms : run.samples_ms) sum_ms += ms;
      run.benchmark_s = sum_ms * 1e-3;
      const std::string& invalidity = result["invalidity"].as_string();
      PURLIN_TRY(add(std::move(run), invalidity == "correct" ? "" : invalidity));
    }
    PURLIN_TRY(check_not_empty());
    collect_values();
    return Status::ok();
  }

  // The parameters of `entry`, in the space's order.
  Status take_config(const Json& entry, RecordedRun& run) const {
    for (const ReplaySpace::Parameter& parameter : space.parameters_) {
      const Json* json = entry.find(parameter.name);
      if (json == nullptr) return error(Code::kInvalid, "lacks the parameter '{}'", parameter.name);
      PURLIN_ASSIGN(Value value, value_from_json(*json));
      run.config.set(parameter.name, std::move(value));
    }
    return Status::ok();
  }

  Status add(RecordedRun run, const std::string& failure) {
    if (!failure.empty() || run.samples_ms.empty()) {
      run.failure = failure.empty() ? "no samples were recorded" : failure;
      run.status = status_of(failure);
      run.samples_ms.clear();
    }
    PURLIN_ASSIGN(std::string key, space.key_of(run.config));
    // The first recording of a config stands.
    if (space.by_key_.emplace(std::move(key), space.runs_.size()).second)
      space.runs_.push_back(std::move(run));
    return Status::ok();
  }

  Status check_not_empty() const {
    return space.runs_.empty() ? error(Code::kInvalid, "it records no config") : Status::ok();
  }

  // T4 does not list the values: they are those that occur, ascending.
  void collect_values() {
    for (ReplaySpace::Parameter& parameter : space.parameters_) {
      std::unordered_map<std::string, bool> seen;
      for (const RecordedRun& run : space.runs_) {
        const Value& value = *run.config.find(parameter.name);
        if (seen.emplace(value_key(value), true).second) parameter.values.push_back(value);
      }
      std::sort(parameter.values.begin(), parameter.values.end(),
                [](const Value& a, const Value& b) {
                  const auto x = to_double(a), y = to_double(b);
                  if (x.is_ok() && y.is_ok()) return *x < *y;
                  if (x.is_ok() != y.is_ok()) return x.is_ok();  // numbers before texts
                  return to_text(a) < to_text(b);
                });
    }
  }
};

Result<ReplaySpace> ReplaySpace::parse(std::string_view json) {
  PURLIN_ASSIGN(const Json document, Json::parse(json, {kMaxBytes, 32}));
  ReplayReader reader;
  PURLIN_TRY(reader.read(document));
  return std::move(reader.space);
}

Result<ReplaySpace> ReplaySpace::read(const std::string& path) {
  PURLIN_ASSIGN(std::string text, read_file(path, kMaxBytes));
  if (is_gzip(text)) {
    auto plain = gunzip(text, kMaxBytes);
    if (!plain.is_ok()) return plain.status().with_context(path);
    text = std::move(*plain);
  }
  auto space = parse(text);
  if (!space.is_ok()) return space.status().with_context(path);
  return space;
}

Result<std::string> ReplaySpace::key_of(const Config& config) const {
  std::string key;
  for (const Parameter& parameter : parameters_) {
    const Value* value = config.find(parameter.name);
    if (value == nullptr)
      return error(Code::kInvalid, "the config {} lacks the recorded parameter '{}'", config.text(),
                   parameter.name);
    key += value_key(*value);
    key += '\x1f';  // not in any value: ("ab", "c") is not ("a", "bc")
  }
  return key;
}

Result<const RecordedRun*> ReplaySpace::find(const Config& config) const {
  PURLIN_ASSIGN(const std::string key, key_of(config));
  for (const auto& item : config.items()) {  // no binding: clang 14 cannot capture one
    const std::string& name = item.first;
    if (std::none_of(parameters_.begin(), parameters_.end(),
                     [&](const Parameter& parameter) { return parameter.name == name; }))
      return error(Code::kInvalid, "the recorded space has no parameter '{}'", name);
  }
  const auto found = by_key_.find(key);
  if (found == by_key_.end())
    return error(Code::kInvalid, "the recorded space has no config {}", config.text());
  return &runs_[found->second];
}

}  // namespace purlin::gpu
