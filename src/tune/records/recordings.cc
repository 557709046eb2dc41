// SPDX-License-Identifier: Apache-2.0
#include "tune/records/recordings.h"

#include "base/files.h"
#include "base/gzip.h"
#include "base/text.h"
#include "model/document.h"
#include "tune/records/stored_evaluations.h"

#include <algorithm>
#include <cctype>

namespace purlin::tune {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxRecordings = 10'000;  // of one file

using Recordings = std::vector<gpu::Recording>;

// Parameters are those of the first config; runs without one of them are left out.
void add_run(gpu::RecordedRun run, const Config& config, gpu::RecordingBuilder& to) {
  (void)to.add(std::move(run), config);
}

gpu::RecordedRun run_of(const Evaluation& evaluation) {
  gpu::RecordedRun run;
  run.status = evaluation.status;
  if (!evaluation.ok())
    run.failure = evaluation.message.empty() ? status_name(evaluation.status) : evaluation.message;
  for (const Sample& sample : evaluation.samples) run.samples_ms.push_back(sample.ms);
  // A config that was given up has few samples; its estimate is what is known of it.
  if (evaluation.ok() && (run.samples_ms.empty() || evaluation.raced_out))
    run.samples_ms.assign(1, evaluation.time_ms);
  run.compile_s = evaluation.compile_s;
  run.verification_s = evaluation.verify_s;
  run.benchmark_s = evaluation.measure_s;
  run.overhead_s = std::max(
      0.0, evaluation.cost_s - evaluation.compile_s - evaluation.verify_s - evaluation.measure_s);
  if (evaluation.registers > 0) run.metrics.emplace_back("registers", evaluation.registers);
  return run;
}

void take_environment(const Json& document, gpu::Recording& recording) {
  recording.format = "purlin";
  const Environment environment = environment_from_json(document["environment"]);
  if (environment.devices.empty()) return;
  const DeviceInfo& device = environment.devices.front();
  recording.device = device.name;
  recording.vendor = vendor_of(device.vendor.empty() ? device.name : device.vendor);
  recording.toolkit = device.toolkit;
}

Status add_evaluation(const Json& json, std::size_t number, gpu::RecordingBuilder& to) {
  Result<Evaluation> evaluation = evaluation_from_json(json);
  // Times of the search compare with each other; those of the finals may be of another state.
  if (evaluation.is_ok() && json["search"]["time_ms"].is_number()) {
    evaluation->time_ms = json["search"]["time_ms"].as_double();
    evaluation->samples.clear();
    for (const Json& ms : json["search"]["samples_ms"].items())
      evaluation->samples.push_back({ms.as_double(), 0});
  }
  if (!evaluation.is_ok())
    return evaluation.status().with_context(fmt::format("evaluation {}", number));
  if (evaluation->ok() && !(evaluation->time_ms > 0))
    return error(Code::kInvalid, "evaluation {}: is ok, but its time_ms is {}", number,
                 evaluation->time_ms);
  add_run(run_of(*evaluation), evaluation->config, to);
  return Status::ok();
}

Result<gpu::Recording> read_session_document(const Json& document) {
  PURLIN_TRY(check_schema(document, "purlin.tune", 1));
  gpu::Recording recording;
  take_environment(document, recording);
  recording.kernel = document["kernel"].as_string();
  if (document["problem"].is_object()) {
    PURLIN_ASSIGN(recording.problem, shape_from_json(document["problem"]));
  }
  gpu::RecordingBuilder builder(std::move(recording));
  std::size_t number = 0;
  for (const Json& evaluation : document["evaluations"].items())
    PURLIN_TRY(add_evaluation(evaluation, number++, builder));
  return builder.finish();
}

// `lines` without the header. A torn last line is what a kill leaves.
Result<gpu::Recording> read_journal(const Json& header, std::string_view lines) {
  PURLIN_TRY(check_schema(header, "purlin.session", 1));
  gpu::Recording recording;
  take_environment(header, recording);
  recording.kernel = header["kernel"].as_string();
  if (header["problem"].is_object()) {
    PURLIN_ASSIGN(recording.problem, shape_from_json(header["problem"]));
  }
  gpu::RecordingBuilder builder(std::move(recording));
  std::size_t number = 1, evaluations = 0;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    if (end == std::string_view::npos) break;
    ++number;
    const Result<Json> line = Json::parse(lines.substr(0, end), {kMaxBytes, kMaxDepth});
    lines.remove_prefix(end + 1);
    if (!line.is_ok()) return line.status().with_context(fmt::format("line {}", number));
    if (const Json* evaluation = line->find("evaluation"))
      PURLIN_TRY(add_evaluation(*evaluation, evaluations++, builder)
                     .with_context(fmt::format("line {}", number)));
  }
  return builder.finish();
}

ProblemShape problem_of(const Json& sizes) {
  ProblemShape problem;
  const char* const names[] = {"x", "y", "z"};
  for (std::size_t i = 0; i < std::min<std::size_t>(sizes.size(), 3); ++i)
    if (const std::int64_t extent = sizes.items()[i].as_int(); extent > 0)
      problem.set(names[i], extent);
  return problem;
}

// Kernel Launcher's wisdom: a header, then a line for each result.
Result<Recordings> read_wisdom(const Json& header, std::string_view lines) {
  if (header["version"].as_string() != "1.0")
    return error(Code::kInvalid, "line 1: wisdom of the version {}; only \"1.0\" is known",
                 header["version"].dump());
  const std::string objective = header["objective"].as_string();
  std::vector<gpu::RecordingBuilder> builders;
  std::size_t number = 1;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view text = trim(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
    ++number;
    if (text.empty() || text.front() == '#') continue;
    const auto wrong = [&](const std::string& what) {
      return error(Code::kInvalid, "line {}: {}", number, what);
    };
    const Result<Json> parsed = Json::parse(text, {kMaxBytes, kMaxDepth});
    if (!parsed.is_ok()) return wrong(parsed.status().message());
    const Json& line = *parsed;
    const Json& names = header["tunable_parameters"];
    if (line["config"].size() != names.size())
      return wrong(fmt::format("\"config\" has {} values for {} parameters", line["config"].size(),
                               names.size()));
    Config config;
    for (std::size_t i = 0; i < names.size(); ++i) {
      Result<Value> value = value_from_json(line["config"].items()[i]);
      if (!value.is_ok()) return wrong(value.status().message());
      config.set(names.items()[i].as_string(), std::move(value).value());
    }
    const double time_ms = line[objective].as_double();
    if (!(time_ms > 0)) return wrong(fmt::format("\"{}\" is no positive number", objective));
    gpu::RecordedRun run;
    run.samples_ms = {time_ms};
    const std::string& device = line["environment"]["device_name"].as_string();
    const ProblemShape problem = problem_of(line["problem_size"]);
    auto at = std::find_if(builders.begin(), builders.end(), [&](const gpu::RecordingBuilder& one) {
      return one.so_far().device == device && one.so_far().problem == problem;
    });
    if (at == builders.end()) {
      if (builders.size() == kMaxRecordings)
        return wrong(fmt::format("more than {} devices and problems", kMaxRecordings));
      gpu::Recording recording;
      recording.format = "wisdom";
      recording.device = device;
      recording.kernel = header["key"].as_string();
      recording.problem = problem;
      at = builders.insert(builders.end(), gpu::RecordingBuilder(std::move(recording)));
    }
    add_run(std::move(run), config, *at);
  }
  Recordings recordings;
  for (gpu::RecordingBuilder& builder : builders) recordings.push_back(builder.finish());
  return recordings;
}

Result<Recordings> read_document(const Json& document) {
  const std::string& schema = document["schema"].as_string();
  Recordings recordings;
  const auto add = [&](Result<gpu::Recording> recording) -> Status {
    PURLIN_TRY(recording.status());
    if (recordings.size() == kMaxRecordings)
      return error(Code::kInvalid, "holds more than {} results", kMaxRecordings);
    recordings.push_back(std::move(recording).value());
    return Status::ok();
  };
  const auto add_entry = [&](const Json& json) -> Status {
    PURLIN_ASSIGN(const cache::Entry entry, cache::entry_from_json(json));
    return add(recording_of(entry));
  };
  if (starts_with(schema, "purlin.tune/")) {
    PURLIN_TRY(add(read_session_document(document)));
  } else if (starts_with(schema, "purlin.tune-set/")) {
    for (const Json& result : document["results"].items())
      PURLIN_TRY(add(read_session_document(result)));
  } else if (starts_with(schema, "purlin.evaluations/")) {
    PURLIN_TRY(add(stored_evaluations_from_json(document)));
  } else if (starts_with(schema, "purlin.entry/")) {
    PURLIN_TRY(add_entry(document));
  } else if (starts_with(schema, "purlin.lookup/")) {
    PURLIN_TRY(add_entry(document["entry"]));
  } else if (starts_with(schema, "purlin.cache/")) {
    for (const Json& entry : document["entries"].items()) PURLIN_TRY(add_entry(entry));
  } else {
    return error(Code::kInvalid, "is a {}, which has no results of tuning", schema);
  }
  return recordings;
}

}  // namespace

Result<Recordings> parse_recordings(std::string_view text) {
  if (is_gzip(text)) {
    PURLIN_ASSIGN(const std::string plain, gunzip(text, kMaxBytes));
    return parse_recordings(plain);
  }
  // Formats of lines have a header: an object on a separate line.
  Result<Recordings> recordings = Recordings{};
  const std::size_t end = text.find('\n');
  const Result<Json> header = end == std::string_view::npos || end > (std::size_t{1} << 20)
                                  ? error(Code::kInvalid, "")
                                  : Json::parse(text.substr(0, end), {kMaxBytes, kMaxDepth});
  if (header.is_ok() && starts_with((*header)["schema"].as_string(), "purlin.session/")) {
    PURLIN_ASSIGN(gpu::Recording recording, read_journal(*header, text.substr(end + 1)));
    recordings->push_back(std::move(recording));
  } else if (header.is_ok() && (*header)["tunable_parameters"].is_array()) {
    recordings = read_wisdom(*header, text.substr(end + 1));
  } else {
    const gpu::TextParts parts = gpu::parts_of(text);
    PURLIN_ASSIGN(const std::string schema, gpu::schema_of(parts));
    if (starts_with(schema, "purlin.")) {
      PURLIN_ASSIGN(const Json document, gpu::parse_tuner_json(text));
      recordings = read_document(document);
    } else {
      PURLIN_ASSIGN(gpu::Recording recording, gpu::parse_recording(parts));
      recordings->push_back(std::move(recording));
    }
  }
  if (!recordings.is_ok()) return recordings.status();
  std::erase_if(*recordings, [](const gpu::Recording& one) { return one.runs.empty(); });
  if (recordings->empty()) return error(Code::kInvalid, "it records no config");
  for (gpu::Recording& recording : *recordings)
    if (recording.vendor.empty()) recording.vendor = vendor_of(recording.device);
  return recordings;
}

Result<Recordings> read_recordings(const std::string& path) {
  const std::string file = is_directory(path) ? join_path(path, "journal.jsonl") : path;
  PURLIN_ASSIGN(const std::string text, read_file(file, kMaxBytes));
  Result<Recordings> recordings = parse_recordings(text);
  if (!recordings.is_ok()) return recordings.status().with_context(path);
  std::string name = base_name(path);
  if (const std::size_t dot = name.find(".json"); dot != std::string::npos) name.resize(dot);
  const std::size_t dash = name.rfind('-');
  for (gpu::Recording& recording : *recordings) {
    if (!recording.device.empty() || dash == std::string::npos) continue;
    recording.device = name.substr(dash + 1);
    recording.vendor = vendor_of(recording.device);
  }
  return recordings;
}

gpu::Recording recording_of(const cache::Entry& entry) {
  gpu::Recording recording;
  recording.format = "purlin";
  recording.device = entry.key.device;
  recording.vendor = vendor_of(entry.key.device);
  recording.toolkit = entry.key.toolkit;
  recording.kernel = entry.key.kernel;
  recording.source_hash = entry.key.source_hash;
  recording.problem = entry.problem;
  gpu::RecordingBuilder builder(std::move(recording));
  const auto add = [&](const Config& config, double time_ms) {
    if (config.empty() || !(time_ms > 0)) return;
    gpu::RecordedRun run;
    run.samples_ms = {time_ms};
    run.timestamp = entry.recorded_at;
    add_run(std::move(run), config, builder);
  };
  // A config that a person stored without a time is worth as much as one with any.
  add(entry.config, entry.time_ms > 0 ? entry.time_ms : 1);
  if (entry.time_ms > 0) {
    add(entry.runner_up, entry.runner_up_ms);
    add(entry.default_config, entry.default_time_ms);
    for (const Config& tie : entry.ties) add(tie, entry.time_ms);
  }
  return builder.finish();
}

gpu::Recording recording_of(const std::vector<Evaluation>& evaluations, const DeviceInfo& device) {
  gpu::Recording recording;
  recording.format = "purlin";
  recording.device = device.name;
  recording.vendor = vendor_of(device.vendor.empty() ? device.name : device.vendor);
  recording.toolkit = device.toolkit;
  gpu::RecordingBuilder builder(std::move(recording));
  for (const Evaluation& evaluation : evaluations)
    add_run(run_of(evaluation), evaluation.config, builder);
  return builder.finish();
}

std::string vendor_of(std::string_view device) {
  std::string name;
  for (const char c : device)
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  struct Words {
    std::string_view vendor;
    std::vector<std::string_view> words;
  };
  static const std::vector<Words> kVendors = {
      {"nvidia",
       {"nvidia", "geforce", "quadro", "tesla", "rtx", "gtx", "titan", "a100", "h100", "h200",
        "v100", "p100", "a4000", "a6000", "k20", "l40", "b200", "sm_"}},
      {"amd",
       {"amd", "advanced micro", "radeon", "instinct", "gfx", "mi50", "mi100", "mi210", "mi250",
        "mi300", "mi325", "mi355", "w6600", "w7800", "vega"}},
      {"intel", {"intel", "arc ", "xe "}},
      {"apple", {"apple"}},
      {"qualcomm", {"qualcomm", "adreno"}},
      {"arm", {"mali"}},
  };
  for (const Words& one : kVendors)
    for (const std::string_view word : one.words)
      if (name.find(word) != std::string::npos) return std::string(one.vendor);
  return "";
}

}  // namespace purlin::tune
