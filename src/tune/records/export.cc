// SPDX-License-Identifier: Apache-2.0
#include "tune/records/export.h"

#include "base/csv.h"
#include "tune/records/stored_evaluations.h"

#include <algorithm>
#include <set>

namespace purlin::tune {
namespace {

using gpu::RecordedRun;
using gpu::Recording;

// Other tools' values are numbers and texts; Kernel Tuner has 0 and 1 for booleans.
Json plain(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? 1 : 0;
  return to_json(value);
}

std::string python_text(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  return to_text(value);
}

std::string timestamp_of(const RecordedRun& run) {
  return run.timestamp.empty() ? "1970-01-01 00:00:00+00:00" : run.timestamp;
}

// Schema 1.1.0 of Kernel Tuner's cache.
std::string kernel_tuner(const Recording& recording) {
  Json problem = Json::array();
  for (const auto& item : recording.problem.items()) problem.push(item.second);
  Json keys = Json::array(), parameters = Json::object();
  for (const Recording::Parameter& parameter : recording.parameters) {
    keys.push(parameter.name);
    Json values = Json::array();
    for (const Value& value : parameter.values) values.push(plain(value));
    parameters.set(parameter.name, std::move(values));
  }
  Json document = Json::object({{"schema_version", "1.1.0"},
                                {"device_name", recording.device},
                                {"kernel_name", recording.kernel},
                                {"problem_size", std::move(problem)},
                                {"tune_params_keys", std::move(keys)},
                                {"tune_params", std::move(parameters)},
                                {"objective", "time"}});
  // A document with one line for each config, as Kernel Tuner writes it. The text is written
  // directly, because Json::set would compare each key with all existing keys.
  std::string text = document.dump();
  text.pop_back();
  text += ",\"cache\":{";
  bool first = true;
  for (const RecordedRun& run : recording.runs) {
    std::string key;
    Json entry = Json::object();
    const Config assigned = recording.config(run);
    for (const auto& [name, value] : assigned.items()) {
      key += (key.empty() ? "" : ",") + python_text(value);
      entry.set(name, plain(value));
    }
    if (run.ok())
      entry.set("time", run.time_ms()).set("times", Json::array_of(run.samples_ms));
    else
      entry.set("time", gpu::kernel_tuner_failure(run.status));
    entry.set("compile_time", run.compile_s * 1e3)
        .set("verification_time", run.verification_s * 1e3)
        .set("benchmark_time", run.benchmark_s * 1e3);
    for (const auto& [name, value] : run.metrics) entry.set(name, value);
    entry.set("strategy_time", 0)
        .set("framework_time", run.overhead_s * 1e3)
        .set("timestamp", timestamp_of(run));
    text += (first ? "\n" : ",\n") + json_quote(key) + ": " + entry.dump();
    first = false;
  }
  return text + "\n}}\n";
}

// Schema 1.0.0 of T4's results.
std::string t4(const Recording& recording) {
  std::string text = "{\"schema_version\":\"1.0.0\",\"metadata\":{\"timeunit\":\"miliseconds\"";
  if (!recording.device.empty()) text += ",\"device\":" + json_quote(recording.device);
  if (!recording.kernel.empty()) text += ",\"kernel\":" + json_quote(recording.kernel);
  text += "},\"results\":[";
  bool first = true;
  for (const RecordedRun& run : recording.runs) {
    Json config = Json::object();
    const Config assigned = recording.config(run);
    for (const auto& [name, value] : assigned.items()) config.set(name, plain(value));
    Json times = Json::object({{"compilation", run.compile_s * 1e3},
                               {"framework", run.overhead_s * 1e3},
                               {"search_algorithm", 0},
                               {"validation", run.verification_s * 1e3}});
    Json time = Json(std::string(gpu::kernel_tuner_failure(run.status)));
    if (run.ok()) {
      times.set("runtimes", Json::array_of(run.samples_ms));
      time = run.time_ms();
    }
    Json measurements =
        Json::array({Json::object({{"name", "time"}, {"value", std::move(time)}, {"unit", "ms"}})});
    for (const auto& [name, value] : run.metrics)
      measurements.push(Json::object({{"name", name}, {"value", value}, {"unit", ""}}));
    const Json result = Json::object({{"timestamp", timestamp_of(run)},
                                      {"configuration", std::move(config)},
                                      {"times", std::move(times)},
                                      {"invalidity", gpu::t4_invalidity(run.status)},
                                      {"correctness", run.ok() ? 1 : 0},
                                      {"measurements", std::move(measurements)},
                                      {"objectives", Json::array({"time"})}});
    text += (first ? "\n" : ",\n") + result.dump();
    first = false;
  }
  return text + "\n]}\n";
}

std::string csv(const Recording& recording) {
  std::set<std::string> metrics;
  for (const RecordedRun& run : recording.runs)
    for (const auto& metric : run.metrics) metrics.insert(metric.first);
  std::string text;
  for (const Recording::Parameter& parameter : recording.parameters)
    text += csv_text(parameter.name) + ",";
  text += "status,time_ms,samples,compile_s,verification_s,benchmark_s,overhead_s";
  for (const std::string& metric : metrics) text += "," + csv_text(metric);
  text += "\n";
  for (const RecordedRun& run : recording.runs) {
    for (std::size_t i = 0; i < recording.parameters.size(); ++i)
      text += csv_text(to_text(recording.parameters[i].values[run.values[i]])) + ",";
    text += fmt::format("{},{},{},{},{},{},{}", status_name(run.status),
                        run.ok() ? fmt::format("{}", run.time_ms()) : "", run.samples_ms.size(),
                        run.compile_s, run.verification_s, run.benchmark_s, run.overhead_s);
    for (const std::string& metric : metrics) {
      text += ",";
      for (const auto& [name, value] : run.metrics)
        if (name == metric) text += fmt::format("{}", value);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

Result<std::string> export_recording(const Recording& recording, std::string_view format) {
  if (format == "kernel-tuner") return kernel_tuner(recording);
  if (format == "t4") return t4(recording);
  if (format == "csv") return csv(recording);
  if (format == "json") return stored_evaluations_json(recording).dump() + "\n";
  return error(Code::kInvalid,
               "results of tuning are not written as '{}'; there are kernel-tuner, t4, csv and "
               "json",
               format);
}

}  // namespace purlin::tune
