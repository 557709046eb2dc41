// SPDX-License-Identifier: Apache-2.0
// Recording: the measurements of one tuning run on one device at one problem shape, from any tuner.
//
// Reads Kernel Tuner's cache files, the community's T4 output and KTT's JSON
// (docs/formats/replay.md lists what each format lacks). Thread-safety: value types; pure
// functions. Failure: kInvalid reports the place in the document and the error.
#pragma once

#include "base/json/json.h"
#include "base/status.h"
#include "model/evaluation.h"
#include "model/expression/value.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::gpu {

// What was recorded of one config. Durations are seconds, as they were on the recording machine.
struct RecordedRun {
  Config config;  // in the recording's parameter order
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
};

// How other tuners call failures, in both directions; "" for kOk.
EvaluationStatus status_from_failure(std::string_view failure);
std::string_view kernel_tuner_failure(EvaluationStatus status);  // "CompilationFailedConfig"
std::string_view t4_invalidity(EvaluationStatus status);         // "compile"; "correct" for kOk

// JSON as tuners write it: NaN is null, and a file that its tuner has not closed ends behind its
// last complete config.
struct TunerJson {
  Json document;
  std::string note;  // as Recording::note
};
Result<TunerJson> parse_tuner_json(std::string_view text);

// Whether it is a document of one of the three formats.
bool is_recording(const Json& document);
Result<Recording> recording_from_json(const Json& document);
// The same for text, plain or gzipped.
Result<Recording> parse_recording(std::string_view text);

// For parameters whose values are not listed: those that occur, ascending, numbers before texts.
void collect_values(Recording& recording);
// Equal values of all types have equal keys: recordings mix 1, 1.0 and true.
std::string value_key(const Value& value);

}  // namespace purlin::gpu
