// SPDX-License-Identifier: Apache-2.0
// TuningHours: the GPU time that a pool spent on tuning on this UTC day, by device, in a JSON file
// that survives restarts. It bounds the pool. One thread. Failure: kIo; a damaged file is kCorrupt.
#pragma once

#include "base/status.h"
#include "base/time.h"

#include <map>
#include <string>

namespace purlin::cli {

class TuningHours {
 public:
  // `clock` outlives it.
  static Result<TuningHours> open(const std::string& path, Clock& clock);

  double spent_s(const std::string& device);
  // Durable when it returns.
  Status add(const std::string& device, double seconds);

 private:
  TuningHours(std::string path, Clock& clock) : path_(std::move(path)), clock_(&clock) {}
  void turn_day();

  std::string path_;
  Clock* clock_;
  std::int64_t day_ = 0;
  std::map<std::string, double> seconds_;
};

}  // namespace purlin::cli
