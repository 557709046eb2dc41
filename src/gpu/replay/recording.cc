// SPDX-License-Identifier: Apache-2.0
#include "gpu/replay/recording.h"

#include "base/files.h"
#include "base/gzip.h"
#include "base/json/json_dialect.h"
#include "base/json/json_pieces.h"
#include "base/text.h"
#include "gpu/replay/recording_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace purlin::gpu {
namespace {

constexpr std::size_t kMaxRecordingBytes = std::size_t{1} << 30;
constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxSamples = 100'000;  // of one config
constexpr std::size_t kMaxPlaces = 65'536;    // values of one parameter

// By the member of the document that holds the runs.
constexpr std::array<RecordingFormat, 3> kFormats = {{{"cache", make_kernel_tuner_reader},
                                                      {"results", make_t4_reader},
                                                      {"Results", make_ktt_reader}}};

// nullptr: none.
const RecordingFormat* format_of(const Json& document) {
  if (document["cache"].is_object()) return &kFormats[0];
  if (document["results"].is_array()) return &kFormats[1];
  return document["Results"].is_array() ? &kFormats[2] : nullptr;
}

struct Head {
  Json document;  // without its runs
  bool has_end = true;
};

Result<Head> read_head(const TextParts& parts, const JsonPieces::Take& take) {
  std::vector<std::string> containers;
  for (const RecordingFormat& format : kFormats) containers.emplace_back(format.container);
  JsonPieces pieces(containers, take, kMaxRecordingBytes);
  PURLIN_TRY(parts([&](std::string_view part) { return pieces.add(part); }));
  PURLIN_ASSIGN(const std::string rest, pieces.rest());
  PURLIN_ASSIGN(Json document, parse_tuner_json(rest));
  return Head{std::move(document), pieces.has_end()};
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

Config Recording::config(const RecordedRun& run) const {
  Config config;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    config.set(parameters[i].name, parameters[i].values[run.values[i]]);
  return config;
}

RecordingBuilder::RecordingBuilder(Recording head) : recording_(std::move(head)) {
  for (const Recording::Parameter& parameter : recording_.parameters) {
    listed_.push_back(!parameter.values.empty());
    std::unordered_map<std::string, std::uint16_t>& places = places_.emplace_back();
    for (std::size_t i = 0; i < std::min(parameter.values.size(), kMaxPlaces); ++i)
      places.try_emplace(value_key(parameter.values[i]), static_cast<std::uint16_t>(i));
  }
}

Status RecordingBuilder::add(RecordedRun run, const Config& config) {
  if (recording_.parameters.empty())
    for (const auto& item : config.items()) recording_.parameters.push_back({item.first, {}});
  listed_.resize(recording_.parameters.size(), false);
  places_.resize(recording_.parameters.size());
  for (const Recording::Parameter& parameter : recording_.parameters)
    if (config.find(parameter.name) == nullptr)
      return error(Code::kInvalid, "lacks the parameter '{}'", parameter.name);
  run.values.clear();
  for (std::size_t i = 0; i < recording_.parameters.size(); ++i) {
    Recording::Parameter& parameter = recording_.parameters[i];
    const Value* value = config.find(parameter.name);
    const std::size_t next = parameter.values.size();
    const auto [at, added] =
        places_[i].try_emplace(value_key(*value), static_cast<std::uint16_t>(next));
    if (added && next >= kMaxPlaces)
      return error(Code::kInvalid, "the parameter '{}' has more than {} values", parameter.name,
                   kMaxPlaces);
    if (added)
      parameter.values.push_back(*value);
    else if (!listed_[i] && std::holds_alternative<std::int64_t>(*value))
      parameter.values[at->second] = *value;
    run.values.push_back(at->second);
  }
  recording_.runs.push_back(std::move(run));
  return Status::ok();
}

void RecordingBuilder::name_kernel(const std::string& name) {
  if (recording_.kernel.empty()) recording_.kernel = name;
}

Recording RecordingBuilder::finish() {
  for (std::size_t i = 0; i < recording_.parameters.size(); ++i) {
    if (listed_[i]) continue;
    std::vector<Value>& values = recording_.parameters[i].values;
    std::vector<std::uint16_t> order(values.size()), place(values.size());
    std::iota(order.begin(), order.end(), std::uint16_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::uint16_t a, std::uint16_t b) { return less(values[a], values[b]); });
    std::vector<Value> sorted;
    for (const std::uint16_t at : order) {
      place[at] = static_cast<std::uint16_t>(sorted.size());
      sorted.push_back(std::move(values[at]));
    }
    values = std::move(sorted);
    for (RecordedRun& run : recording_.runs) run.values[i] = place[run.values[i]];
  }
  return std::move(recording_);
}

Result<Config> config_of(const std::vector<Recording::Parameter>& parameters, const Json& entry) {
  Config config;
  for (const Recording::Parameter& parameter : parameters) {
    const Json* json = entry.find(parameter.name);
    if (json == nullptr) return error(Code::kInvalid, "lacks the parameter '{}'", parameter.name);
    PURLIN_ASSIGN(Value value, value_from_json(*json));
    config.set(parameter.name, std::move(value));
  }
  return config;
}

std::vector<double> samples_of(const Json& times, double to_ms) {
  std::vector<double> samples;
  for (const Json& time : times.items()) {
    if (samples.size() == kMaxSamples) break;
    // Kernel Tuner before 0.4 wrote 1e20 for a config that failed.
    if (const double ms = time.as_double() * to_ms; is_time_ms(ms)) samples.push_back(ms);
  }
  return samples;
}

double seconds_of(const Json& duration, double to_s) {
  const double value = duration.as_double() * to_s;
  return value > 0 && std::isfinite(value) ? value : 0;
}

void set_failure(RecordedRun& run, std::string_view failure) {
  if (failure.empty() && !run.samples_ms.empty()) return;
  run.failure = failure.empty() ? "no samples were recorded" : failure;
  run.status = failure.empty() ? EvaluationStatus::kLaunch : status_from_failure(failure);
  run.samples_ms.clear();
}

Result<Json> parse_tuner_json(std::string_view text) {
  const Json::Limits limits{kMaxRecordingBytes, kMaxDepth};
  Result<Json> strict = Json::parse(text, limits);
  if (strict.is_ok() || text.size() > kMaxRecordingBytes) return strict;
  Result<Json> finite = Json::parse(without_non_finite(text), limits);
  return finite.is_ok() ? finite : strict;
}

TextParts parts_of(std::string_view text) {
  return [text](const std::function<Status(std::string_view)>& take) -> Status {
    if (!is_gzip(text)) return take(text);
    Gunzip contents(take, kMaxRecordingBytes);
    PURLIN_TRY(contents.add(text));
    return contents.finish();
  };
}

TextParts parts_of_file(std::string path) {
  return [path = std::move(path)](const std::function<Status(std::string_view)>& take) -> Status {
    Gunzip contents(take, kMaxRecordingBytes);
    std::optional<bool> packed;  // by the first part
    PURLIN_TRY(read_parts(path, kMaxRecordingBytes, [&](std::string_view part) {
      if (!packed) packed = is_gzip(part);
      return *packed ? contents.add(part) : take(part);
    }));
    return packed.value_or(false) ? contents.finish() : Status::ok();
  };
}

Result<std::string> schema_of(const TextParts& parts) {
  PURLIN_ASSIGN(const Head head, read_head(parts, {}));
  return head.document["schema"].as_string();
}

// Twice over the text, because what the runs mean may be said behind them.
Result<Recording> parse_recording(const TextParts& parts) {
  PURLIN_ASSIGN(const Head head, read_head(parts, {}));
  const RecordingFormat* format = format_of(head.document);
  if (format == nullptr)
    return error(Code::kInvalid,
                 "neither a Kernel Tuner cache (no \"cache\" object) nor a T4 output (no "
                 "\"results\" array) nor KTT's (no \"Results\" array)");
  const std::unique_ptr<RecordingReader> reader = format->make();
  PURLIN_ASSIGN(Recording empty, reader->head(head.document));
  if (!head.has_end)
    empty.note =
        "the file has no end: its tuner was stopped, or has not finished; the configs that are "
        "complete are read";
  RecordingBuilder builder(std::move(empty));
  std::size_t number = 0;
  const auto add = [&](std::string_view piece) -> Status {
    const Result<Json> json = parse_tuner_json(piece);
    if (!json.is_ok())
      return json.status().with_context(fmt::format("\"{}\" {}", format->container, number));
    ++number;
    return reader->add(*json, builder);
  };
  PURLIN_TRY(read_head(parts, add).status());
  Recording recording = builder.finish();
  if (recording.runs.empty() && !head.has_end)
    return error(Code::kInvalid, "malformed JSON: it ends before its first config is complete");
  if (recording.runs.empty()) return error(Code::kInvalid, "it records no config");
  return recording;
}

std::string value_key(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  if (const auto* real = std::get_if<double>(&value);
      real != nullptr && *real == std::floor(*real) && std::abs(*real) < 1e15)
    return std::to_string(static_cast<std::int64_t>(*real));
  return to_text(value);
}

}  // namespace purlin::gpu
