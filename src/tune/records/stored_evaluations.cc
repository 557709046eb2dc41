// SPDX-License-Identifier: Apache-2.0
#include "tune/records/stored_evaluations.h"

#include "base/files.h"
#include "base/gzip.h"
#include "base/text.h"
#include "base/version.h"
#include "model/document.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace purlin::tune {
namespace {

constexpr std::size_t kMaxConfigs = 20'000;
constexpr std::size_t kMaxStoredValues = 65'536;                // of a parameter
constexpr std::size_t kMaxStoredBytes = std::size_t{64} << 20;  // unpacked

std::string safe_name(std::string_view kernel) {
  std::string name;
  for (const char c : kernel.substr(0, 64)) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    name += plain ? c : '_';
  }
  return name;
}

// Indices of the runs that are kept: all, or the fastest and evenly spread others.
std::vector<std::size_t> kept(const gpu::Recording& recording) {
  std::vector<std::size_t> order(recording.runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() <= kMaxConfigs) return order;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const gpu::RecordedRun &x = recording.runs[a], &y = recording.runs[b];
    if (x.ok() != y.ok()) return x.ok();
    return x.ok() && x.time_ms() < y.time_ms();
  });
  std::vector<std::size_t> chosen(order.begin(), order.begin() + kMaxConfigs / 2);
  const std::size_t rest = order.size() - chosen.size();
  for (std::size_t i = 0; i < kMaxConfigs / 2; ++i)
    chosen.push_back(order[kMaxConfigs / 2 + i * rest / (kMaxConfigs / 2)]);
  return chosen;
}

}  // namespace

Json stored_evaluations_json(const gpu::Recording& recording) {
  Json document = Json::object({{"schema", "purlin.evaluations/1"}, {"tool_version", version()}});
  document.set("kernel", recording.kernel)
      .set("problem", to_json(recording.problem))
      .set("device", recording.device)
      .set("vendor", recording.vendor)
      .set("toolkit", recording.toolkit)
      .set("source_hash", recording.source_hash);
  Json parameters = Json::array();
  for (const gpu::Recording::Parameter& parameter : recording.parameters) {
    Json values = Json::array();
    for (const Value& value : parameter.values) values.push(to_json(value));
    parameters.push(Json::object({{"name", parameter.name}, {"values", std::move(values)}}));
  }
  Json configs = Json::array(), times = Json::array(), statuses = Json::array();
  for (const std::size_t i : kept(recording)) {
    const gpu::RecordedRun& run = recording.runs[i];
    configs.push(Json::array_of(run.values));
    times.push(run.ok() ? Json(run.time_ms()) : Json(nullptr));
    statuses.push(status_name(run.status));
  }
  return document.set("parameters", std::move(parameters))
      .set("configs", std::move(configs))
      .set("time_ms", std::move(times))
      .set("status", std::move(statuses));
}

Result<gpu::Recording> stored_evaluations_from_json(const Json& json) {
  PURLIN_TRY(check_schema(json, "purlin.evaluations", 1));
  gpu::Recording recording;
  recording.format = "purlin";
  recording.kernel = json["kernel"].as_string();
  recording.device = json["device"].as_string();
  recording.vendor = json["vendor"].as_string();
  recording.toolkit = json["toolkit"].as_string();
  recording.source_hash = json["source_hash"].as_string();
  if (json["problem"].is_object()) {
    PURLIN_ASSIGN(recording.problem, shape_from_json(json["problem"]));
  }
  for (const Json& one : json["parameters"].items()) {
    gpu::Recording::Parameter parameter{one["name"].as_string(), {}};
    for (const Json& item : one["values"].items()) {
      PURLIN_ASSIGN(Value value, value_from_json(item));
      parameter.values.push_back(std::move(value));
    }
    if (parameter.values.size() > kMaxStoredValues)
      return error(Code::kInvalid, "'{}' has more than {} values", parameter.name,
                   kMaxStoredValues);
    recording.parameters.push_back(std::move(parameter));
  }
  const Json::Array& configs = json["configs"].items();
  const Json::Array& times = json["time_ms"].items();
  const Json::Array& statuses = json["status"].items();
  if (times.size() != configs.size() || statuses.size() != configs.size())
    return error(Code::kInvalid, "{} configs, but {} of \"time_ms\" and {} of \"status\"",
                 configs.size(), times.size(), statuses.size());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    gpu::RecordedRun run;
    if (configs[i].size() != recording.parameters.size())
      return error(Code::kInvalid, "config {} has {} values for {} parameters", i,
                   configs[i].size(), recording.parameters.size());
    for (std::size_t p = 0; p < recording.parameters.size(); ++p) {
      const std::int64_t place = configs[i].items()[p].as_int(-1);
      if (place < 0 || place >= static_cast<std::int64_t>(recording.parameters[p].values.size()))
        return error(Code::kInvalid, "config {}: '{}' has no value {}", i,
                     recording.parameters[p].name, place);
      run.values.push_back(static_cast<std::uint16_t>(place));
    }
    const auto status = status_from_name(statuses[i].as_string());
    const double time_ms = times[i].as_double();
    if (!status)
      return error(Code::kInvalid, "config {}: unknown status {}", i, statuses[i].dump());
    run.status = *status;
    if (run.ok() && !(time_ms > 0 && std::isfinite(time_ms)))
      return error(Code::kInvalid, "config {} is ok, but its time is {}", i, times[i].dump());
    if (run.ok())
      run.samples_ms = {time_ms};
    else
      run.failure = statuses[i].as_string();
    recording.runs.push_back(std::move(run));
  }
  return recording;
}

std::string evaluations_path(const std::string& directory, const std::string& kernel,
                             const std::string& id) {
  return join_path(join_path(directory, "evaluations"),
                   fmt::format("{}-{}.json.gz", safe_name(kernel), id));
}

Status store_evaluations(const std::string& path, const gpu::Recording& recording) {
  PURLIN_TRY(make_directories_durably(parent_path(path)));
  PURLIN_ASSIGN(const std::string packed, gzip(stored_evaluations_json(recording).dump() + "\n"));
  return write_atomic(path, packed);
}

std::vector<gpu::Recording> find_evaluations(const std::string& directory,
                                             const std::string& kernel, std::size_t at_most,
                                             std::size_t& skipped) {
  std::vector<gpu::Recording> found;
  skipped = 0;
  const std::string folder = join_path(directory, "evaluations");
  if (!is_directory(folder)) return found;
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names.is_ok()) return found;
  for (const std::string& name : *names) {
    if (found.size() == at_most) break;
    if (!starts_with(name, safe_name(kernel) + "-") || !ends_with(name, ".json.gz")) continue;
    const auto read = [&]() -> Result<gpu::Recording> {
      PURLIN_ASSIGN(const std::string packed, read_file(join_path(folder, name), kMaxStoredBytes));
      PURLIN_ASSIGN(const std::string text, gunzip(packed, kMaxStoredBytes));
      PURLIN_ASSIGN(const Json json, Json::parse(text, {kMaxStoredBytes, 16}));
      return stored_evaluations_from_json(json);
    };
    Result<gpu::Recording> recording = read();
    if (!recording.is_ok())
      ++skipped;
    else if (recording->kernel == kernel)
      found.push_back(std::move(recording).value());
  }
  return found;
}

}  // namespace purlin::tune
