// SPDX-License-Identifier: Apache-2.0
// ReplaySpace: a search space that was measured completely: every config with its raw samples or
// its failure.
//
// Reads the formats of recording.h, plain or gzipped; see docs/formats/replay.md. Thread-safety:
// immutable once read. Failure: kInvalid names the file and the error in it.
#pragma once

#include "base/status.h"
#include "gpu/replay/recording.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::gpu {

class ReplaySpace {
 public:
  using Parameter = Recording::Parameter;

  static Result<ReplaySpace> read(const std::string& path);
  static Result<ReplaySpace> parse(std::string_view text);  // plain or gzipped
  // The first recording of a config counts.
  static Result<ReplaySpace> of(Recording recording);

  const Recording& recording() const { return recording_; }
  const std::string& device() const {
    return recording_.device;
  }  // "NVIDIA A100-PCIE-40GB"; may be ""
  const std::string& kernel() const {
    return recording_.kernel;
  }  // "convolution_kernel"; may be ""
  const std::vector<Parameter>& parameters() const { return recording_.parameters; }
  const std::vector<RecordedRun>& runs() const { return recording_.runs; }
  Config config(const RecordedRun& run) const { return recording_.config(run); }
  // The run of this config. kInvalid when a parameter is missing or unknown, or when no run has
  // these values: the recording holds valid configs only.
  Result<const RecordedRun*> find(const Config& config) const;

 private:
  Recording recording_;
  std::vector<std::unordered_map<std::string, std::uint16_t>> places_;  // of a parameter's values
  std::vector<std::uint32_t> order_;                                    // runs, by their values
};

}  // namespace purlin::gpu
