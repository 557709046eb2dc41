// SPDX-License-Identifier: Apache-2.0
// The parts that the readers of recordings share; for this folder only. Pure functions, and readers
// that belong to one thread.
#pragma once

#include "gpu/replay/recording.h"

#include <memory>

namespace purlin::gpu {

// Reads one format: the document without its runs first, then each run.
class RecordingReader {
 public:
  virtual ~RecordingReader() = default;
  virtual Result<Recording> head(const Json& document) = 0;
  // A member of the container, as an object of one, or an item.
  virtual Status add(const Json& piece, RecordingBuilder& to) = 0;
};

struct RecordingFormat {
  const char* container;  // the member of the document that holds the runs
  std::unique_ptr<RecordingReader> (*make)();
};
std::unique_ptr<RecordingReader> make_kernel_tuner_reader();
std::unique_ptr<RecordingReader> make_t4_reader();
std::unique_ptr<RecordingReader> make_ktt_reader();

// Positive finite numbers of an array; other values are not samples.
std::vector<double> samples_of(const Json& times, double to_ms = 1);
// A duration in s, `to_s` long each unit; 0 for a value that is not a positive number.
double seconds_of(const Json& duration, double to_s);
// Of an object with the values of the recording's parameters.
Result<Config> config_of(const std::vector<Recording::Parameter>& parameters, const Json& entry);
// Marks a run as failed; one that did not fail and has no samples has, too.
void set_failure(RecordedRun& run, std::string_view failure);

inline constexpr std::size_t kMaxMetrics = 64;  // of one config

}  // namespace purlin::gpu
