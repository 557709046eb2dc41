// SPDX-License-Identifier: Apache-2.0
// ReplaySpace: a search space that someone measured completely: every config with its raw samples,
// or with how it failed.
//
// Reads Kernel Tuner's cache files and the community's T4 output, plain or gzipped; see
// docs/formats/replay.md. Thread-safety: immutable once read. Failure: kInvalid names the file and
// what is wrong in it.
#pragma once

#include "base/status.h"
#include "model/evaluation.h"
#include "model/value.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::gpu {

// What was recorded of one config. Durations are seconds, as they were on the recording machine.
struct RecordedRun {
  Config config;  // in the space's parameter order
  EvaluationStatus status = EvaluationStatus::kOk;
  std::string failure;  // as recorded, when status is not ok: "RuntimeFailedConfig"
  std::vector<double> samples_ms;
  double compile_s = 0, benchmark_s = 0, verification_s = 0;
  double overhead_s = 0;  // the recording tuner's own
  // All of it: what the evaluation cost, the community score's measure.
  double cost_s() const { return compile_s + benchmark_s + verification_s + overhead_s; }
};

class ReplaySpace {
 public:
  struct Parameter {
    std::string name;
    std::vector<Value> values;
  };

  static Result<ReplaySpace> read(const std::string& path);
  static Result<ReplaySpace> parse(std::string_view json);  // uncompressed

  const std::string& device() const { return device_; }  // "NVIDIA A100-PCIE-40GB"; may be ""
  const std::string& kernel() const { return kernel_; }  // "convolution_kernel"; may be ""
  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<RecordedRun>& runs() const { return runs_; }
  // The run of this config. kInvalid when a parameter is missing or unknown, or when no run has
  // these values: the recording holds valid configs only.
  Result<const RecordedRun*> find(const Config& config) const;

 private:
  friend class ReplayReader;
  Result<std::string> key_of(const Config& config) const;

  std::string device_, kernel_;
  std::vector<Parameter> parameters_;
  std::vector<RecordedRun> runs_;
  std::unordered_map<std::string, std::size_t> by_key_;
};

}  // namespace purlin::gpu
