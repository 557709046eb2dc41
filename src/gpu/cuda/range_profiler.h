// SPDX-License-Identifier: Apache-2.0
// RangeProfiler: CUPTI's range profiler over one context at a time: enable, configure, start, any
// number of ranges, stop, decode. Capture and the tuner share it.
//
// Every call except values() waits for all work of the context, which is the thread's current one.
// A context that stays enabled counts its first set even if another is configured later (CUPTI
// 13.0), so another set disables first. Thread-safety: one thread at a time; values() may be called
// from another. Also compiled into the capture library, so it uses only the standard library.
// Failure: CUPTI's own result with the name of the function.
#pragma once

#include "gpu/cuda/counter_host.h"

#include <cuda.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::gpu {

struct RangeStep {
  CUptiResult result = CUPTI_SUCCESS;
  const char* name = "";  // the function that failed
};

class RangeProfiler {
 public:
  // False where the library has no range profiler.
  bool bind(void* cupti);
  // Once there is a context: CUPTI must not be the first to use the driver. 0.1 to 0.3 s, once.
  bool initialize();
  // As CUPTI names it, "GH100"; "" if CUPTI does not report it.
  std::string chip(std::uint32_t device);
  // Lives as long as this object, because images refer to it. nullptr with `why`.
  const CounterConfig* config(const std::string& chip, const std::vector<std::string_view>& metrics,
                              CUptiResult& why);

  // With `replay` a launch between push and pop is run once per pass by CUPTI.
  RangeStep begin(CUcontext context, const CounterConfig& config, std::size_t ranges, bool replay);
  bool push(std::size_t range);
  bool pop();
  // Then image() holds the numbers of all ranges if they are complete(). A config of several passes
  // needs as many sessions, each with ranges of the same work, and again() between them.
  bool finish();
  bool complete() const { return complete_; }
  RangeStep again();
  void disable();
  CUcontext context() const { return context_; }  // that is enabled; nullptr: none
  const CounterConfig* config() const { return config_; }
  const std::vector<std::uint8_t>& image() const { return image_; }

  // Of one range, as many as the config has metrics. False: there is no such range.
  bool values(const CounterConfig& config, const std::vector<std::uint8_t>& image,
              std::size_t range, std::vector<double>& values);

 private:
  CUptiResult configure(const CounterConfig& config, std::size_t ranges, bool replay);
  CUptiResult start();
  bool stop();

  std::mutex host_mutex_;
  CounterHost host_;
  decltype(&cuptiProfilerInitialize) initialize_ = nullptr;
  decltype(&cuptiDeviceGetChipName) chip_name_ = nullptr;
  decltype(&cuptiRangeProfilerEnable) enable_ = nullptr;
  decltype(&cuptiRangeProfilerDisable) disable_ = nullptr;
  decltype(&cuptiRangeProfilerSetConfig) set_config_ = nullptr;
  decltype(&cuptiRangeProfilerGetCounterDataSize) image_size_ = nullptr;
  decltype(&cuptiRangeProfilerCounterDataImageInitialize) image_initialize_ = nullptr;
  decltype(&cuptiRangeProfilerStart) start_ = nullptr;
  decltype(&cuptiRangeProfilerStop) stop_ = nullptr;
  decltype(&cuptiRangeProfilerPushRange) push_ = nullptr;
  decltype(&cuptiRangeProfilerPopRange) pop_ = nullptr;
  decltype(&cuptiRangeProfilerDecodeData) decode_ = nullptr;
  decltype(&cuptiRangeProfilerGetCounterDataInfo) info_ = nullptr;

  bool initialized_ = false, replay_ = false, complete_ = false;
  // By chip and metrics.
  std::map<std::pair<std::string, std::vector<std::string_view>>, std::unique_ptr<CounterConfig>>
      configs_;
  CUpti_RangeProfiler_Object* object_ = nullptr;  // of context_
  CUcontext context_ = nullptr;
  const CounterConfig* config_ = nullptr;
  std::vector<std::uint8_t> image_;
};

// Whether it may work later: another tool uses the counters.
inline bool counters_are_busy(CUptiResult result) { return result == CUPTI_ERROR_HARDWARE_BUSY; }
// For a person; `text` is the result's name.
std::string counters_problem(const RangeStep& step, const std::string& text);

}  // namespace purlin::gpu
