// SPDX-License-Identifier: Apache-2.0
// CounterHost: the part of CUPTI's profiler that needs no GPU. It lists a chip's counters,
// configures them and evaluates the measured numbers.
//
// Loads the 100 MiB of CUPTI's libnvperf_host on first use, so only if counters were requested.
// Objects live until the process ends. Thread-safety: none. Also compiled into the capture library,
// so it uses only the standard library.
#pragma once

#include <cupti.h>
#include <cupti_profiler_host.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::gpu {

// A set of counters, made ready for a chip.
struct CounterConfig {
  std::vector<std::string_view> metrics;
  std::vector<const char*> names;  // the same, as CUPTI takes them
  std::vector<std::uint8_t> image;
  std::size_t passes = 0;
  CUpti_Profiler_Host_Object* host = nullptr;
};

class CounterHost {
 public:
  // False with a reason for a CUPTI that has no such interface: it came with CUDA 12.6.
  bool bind(void* cupti, std::string& reason);
  // The names must be null-terminated and outlive the config. Fails as a whole for a
  // counter that the chip does not have.
  CUptiResult prepare(const std::string& chip, const std::vector<std::string_view>& metrics,
                      CounterConfig& config) const;
  // Of one range of a decoded counter image; as many as metrics.
  CUptiResult evaluate(const CounterConfig& config, const std::vector<std::uint8_t>& image,
                       std::size_t range, std::vector<double>& values) const;
  std::vector<std::string> chips() const;  // that this CUPTI knows

 private:
  decltype(&cuptiProfilerHostInitialize) initialize_ = nullptr;
  decltype(&cuptiProfilerHostDeinitialize) deinitialize_ = nullptr;
  decltype(&cuptiProfilerHostConfigAddMetrics) add_metrics_ = nullptr;
  decltype(&cuptiProfilerHostGetConfigImageSize) image_size_ = nullptr;
  decltype(&cuptiProfilerHostGetConfigImage) image_ = nullptr;
  decltype(&cuptiProfilerHostGetNumOfPasses) passes_ = nullptr;
  decltype(&cuptiProfilerHostEvaluateToGpuValues) evaluate_ = nullptr;
  decltype(&cuptiProfilerHostGetSupportedChips) chips_ = nullptr;
};

}  // namespace purlin::gpu
