// SPDX-License-Identifier: Apache-2.0
// Recording: the measurements of one tuning run on one device at one problem shape, from any tuner.
//
// Reads Kernel Tuner's cache files, the community's T4 output and KTT's JSON
// (docs/formats/replay.md lists what each format lacks). A recording of 240,000 configs has to fit
// a small machine: a run has places of values instead of the values, and a file is read piece by
// piece. Thread-safety: value types; pure functions. Failure: kInvalid reports the place in the
// document and the error.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "model/evaluation.h"
#include "model/expression/value.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::gpu {

// What was recorded of one config. Durations are seconds, as they were on the recording machine.
struct RecordedRun {
  std::vector<std::uint16_t> values;  // of each parameter of the recording: the place of its value
  EvaluationStatus status = EvaluationStatus::kOk;
  std::string failure;  // as recorded, when status is not ok: "RuntimeFailedConfig"
  std::vector<double> samples_ms;
  double compile_s = 0, benchmark_s = 0, verification_s = 0;
  double overhead_s = 0;                                // the recording tuner's own
  std::string timestamp;                                // as recorded, "" = not
  std::vector<std::pair<std::string, double>> metrics;  // others than time: "GFLOP/s"
  std::map<std::string, double> counters{};             // the hardware's, by the profiler's names

  bool ok() const { return status == EvaluationStatus::kOk; }
  // Mean of the samples, which is what recordings and the community's score compare. REQUIRES: ok.
  double time_ms() const;
  // The total time of the evaluation, which the community score uses.
  double cost_s() const { return compile_s + benchmark_s + verification_s + overhead_s; }
};

struct Recording {
  struct Parameter {
    std::string name;
    std::vector<Value> values;
  };
  std::string format;  // "kernel-tuner", "t4", "ktt", "wisdom", "purlin"
  std::string device;  // "NVIDIA A100-PCIE-40GB"; "" = not known, as are the following
  std::string vendor, toolkit, kernel, source_hash;
  std::string note;  // what is to be known about the file: that it has no end; "" = nothing
  ProblemShape problem;
  std::vector<Parameter> parameters;
  std::vector<RecordedRun> runs;

  Config config(const RecordedRun& run) const;
};

// Makes a recording of runs that come one after another.
class RecordingBuilder {
 public:
  // All of it but the runs. A parameter without values has those that occur, ascending, numbers
  // before texts. Without parameters, they are those of the first run.
  explicit RecordingBuilder(Recording head);
  // kInvalid: the config lacks a parameter, or a parameter has too many values. Values that are
  // equal, such as 1, 1.0 and true, are one.
  Status add(RecordedRun run, const Config& config);
  void name_kernel(const std::string& name);  // where it has no name yet
  const Recording& so_far() const { return recording_; }
  Recording finish();

 private:
  Recording recording_;
  std::vector<bool> listed_;  // by parameter: its values were given
  std::vector<std::unordered_map<std::string, std::uint16_t>> places_;
};

// How other tuners call failures, in both directions; "" for kOk.
EvaluationStatus status_from_failure(std::string_view failure);
std::string_view kernel_tuner_failure(EvaluationStatus status);  // "CompilationFailedConfig"
std::string_view t4_invalidity(EvaluationStatus status);         // "compile"; "correct" for kOk

// JSON as tuners write it: NaN is null.
Result<Json> parse_tuner_json(std::string_view text);

// Calls the taker with each part of a text, from the first to the last; each time from the start.
using TextParts = std::function<Status(const std::function<Status(std::string_view part)>& take)>;
TextParts parts_of(std::string_view text);  // plain or gzipped; outlives the parts
TextParts parts_of_file(std::string path);

// The member "schema" of a document, "" without one.
Result<std::string> schema_of(const TextParts& parts);
// A file that its tuner has not closed ends behind its last complete config.
Result<Recording> parse_recording(const TextParts& parts);

// Equal values of all types have equal keys: recordings mix 1, 1.0 and true.
std::string value_key(const Value& value);

}  // namespace purlin::gpu
