// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/range_profiler.h"

#include <dlfcn.h>
#include <utility>

namespace purlin::gpu {
namespace {

template <class Function>
bool find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool RangeProfiler::bind(void* cupti) {
  std::string reason;
  return cupti != nullptr && host_.bind(cupti, reason) &&
         find(cupti, initialize_, "cuptiProfilerInitialize") &&
         find(cupti, chip_name_, "cuptiDeviceGetChipName") &&
         find(cupti, enable_, "cuptiRangeProfilerEnable") &&
         find(cupti, disable_, "cuptiRangeProfilerDisable") &&
         find(cupti, set_config_, "cuptiRangeProfilerSetConfig") &&
         find(cupti, image_size_, "cuptiRangeProfilerGetCounterDataSize") &&
         find(cupti, image_initialize_, "cuptiRangeProfilerCounterDataImageInitialize") &&
         find(cupti, start_, "cuptiRangeProfilerStart") &&
         find(cupti, stop_, "cuptiRangeProfilerStop") &&
         find(cupti, push_, "cuptiRangeProfilerPushRange") &&
         find(cupti, pop_, "cuptiRangeProfilerPopRange") &&
         find(cupti, decode_, "cuptiRangeProfilerDecodeData") &&
         find(cupti, info_, "cuptiRangeProfilerGetCounterDataInfo");
}

bool RangeProfiler::initialize() {
  if (initialized_) return true;
  CUpti_Profiler_Initialize_Params params = {};
  params.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  return initialized_ = initialize_(&params) == CUPTI_SUCCESS;
}

std::string RangeProfiler::chip(std::uint32_t device) {
  CUpti_Device_GetChipName_Params params = {};
  params.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
  params.deviceIndex = device;
  if (!initialize() || chip_name_(&params) != CUPTI_SUCCESS || params.pChipName == nullptr)
    return "";
  return params.pChipName;
}

const CounterConfig* RangeProfiler::config(const std::string& chip,
                                           const std::vector<std::string_view>& metrics,
                                           CUptiResult& why) {
  std::unique_ptr<CounterConfig>& config = configs_[{chip, metrics}];
  if (config == nullptr) config = std::make_unique<CounterConfig>();
  why = CUPTI_SUCCESS;
  if (config->host == nullptr) {
    const std::lock_guard<std::mutex> lock(host_mutex_);
    why = host_.prepare(chip, metrics, *config);
  }
  return config->host != nullptr ? config.get() : nullptr;
}

CUptiResult RangeProfiler::configure(const CounterConfig& config, std::size_t ranges, bool replay) {
  std::vector<const char*> names = config.names;  // CUPTI's parameter is not const
  CUpti_RangeProfiler_GetCounterDataSize_Params size = {};
  size.structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE;
  size.pRangeProfilerObject = object_;
  size.pMetricNames = names.data();
  size.numMetrics = names.size();
  size.maxNumOfRanges = ranges;
  size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(ranges);
  CUptiResult result = image_size_(&size);
  if (result != CUPTI_SUCCESS) return result;
  image_.assign(size.counterDataSize, 0);
  CUpti_RangeProfiler_CounterDataImage_Initialize_Params image = {};
  image.structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE;
  image.pRangeProfilerObject = object_;
  image.counterDataSize = image_.size();
  image.pCounterData = image_.data();
  result = image_initialize_(&image);
  if (result != CUPTI_SUCCESS) return result;
  CUpti_RangeProfiler_SetConfig_Params set = {};
  set.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE;
  set.pRangeProfilerObject = object_;
  set.configSize = config.image.size();
  set.pConfig = config.image.data();
  set.counterDataImageSize = image_.size();
  set.pCounterDataImage = image_.data();
  set.range = replay ? CUPTI_AutoRange : CUPTI_UserRange;
  set.replayMode = replay ? CUPTI_KernelReplay : CUPTI_UserReplay;
  set.maxRangesPerPass = ranges;
  set.numNestingLevels = 1;
  set.minNestingLevel = 1;
  set.targetNestingLevel = 1;
  return set_config_(&set);
}

CUptiResult RangeProfiler::start() {
  CUpti_RangeProfiler_Start_Params params = {};
  params.structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = object_;
  return start_(&params);
}

bool RangeProfiler::stop() {
  CUpti_RangeProfiler_Stop_Params params = {};
  params.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = object_;
  if (stop_(&params) != CUPTI_SUCCESS) return false;
  complete_ = params.isAllPassSubmitted != 0;
  return true;
}

RangeStep RangeProfiler::begin(CUcontext context, const CounterConfig& config, std::size_t ranges,
                               bool replay) {
  if (context != context_ || &config != config_) disable();
  if (object_ == nullptr) {
    CUpti_RangeProfiler_Enable_Params enable = {};
    enable.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE;
    enable.ctx = context;
    if (const CUptiResult result = enable_(&enable); result != CUPTI_SUCCESS)
      return {result, "cuptiRangeProfilerEnable"};
    object_ = enable.pRangeProfilerObject;
    context_ = context;
  }
  RangeStep step{configure(config, ranges, replay), "cuptiRangeProfilerSetConfig"};
  if (step.result == CUPTI_SUCCESS && !replay) step = {start(), "cuptiRangeProfilerStart"};
  if (step.result != CUPTI_SUCCESS) {
    disable();
    return step;
  }
  config_ = &config;
  replay_ = replay;
  return step;
}

RangeStep RangeProfiler::again() { return {start(), "cuptiRangeProfilerStart"}; }

bool RangeProfiler::push(std::size_t range) {
  if (replay_) return start() == CUPTI_SUCCESS;
  const std::string name = std::to_string(range);
  CUpti_RangeProfiler_PushRange_Params params = {};
  params.structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = object_;
  params.pRangeName = name.c_str();
  return push_(&params) == CUPTI_SUCCESS;
}

bool RangeProfiler::pop() {
  if (replay_) return stop();
  CUpti_RangeProfiler_PopRange_Params params = {};
  params.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE;
  params.pRangeProfilerObject = object_;
  return pop_(&params) == CUPTI_SUCCESS;
}

bool RangeProfiler::finish() {
  if (!replay_ && !stop()) return false;
  CUpti_RangeProfiler_DecodeData_Params decode = {};
  decode.structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE;
  decode.pRangeProfilerObject = object_;
  return decode_(&decode) == CUPTI_SUCCESS;
}

void RangeProfiler::disable() {
  if (object_ != nullptr) {
    CUpti_RangeProfiler_Disable_Params params = {};
    params.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = object_;
    disable_(&params);
  }
  object_ = nullptr;
  context_ = nullptr;
  config_ = nullptr;
}

bool RangeProfiler::values(const CounterConfig& config, const std::vector<std::uint8_t>& image,
                           std::size_t range, std::vector<double>& values) {
  CUpti_RangeProfiler_GetCounterDataInfo_Params info = {};
  info.structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE;
  info.pCounterDataImage = image.data();
  info.counterDataImageSize = image.size();
  const std::lock_guard<std::mutex> lock(host_mutex_);
  return info_(&info) == CUPTI_SUCCESS && range < info.numTotalRanges &&
         host_.evaluate(config, image, range, values) == CUPTI_SUCCESS;
}

std::string counters_problem(const RangeStep& step, const std::string& text) {
  const std::string plain = std::string(step.name) + ": " + text;
  switch (step.result) {
    case CUPTI_ERROR_HARDWARE_BUSY:
      return "hardware counters were in use by another tool or process (DCGM, Nsight): " + plain;
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "the driver keeps them for administrators: run as root (containers: --cap-add "
             "SYS_ADMIN), or load the driver with NVreg_RestrictProfilingToAdminUsers=0; `purlin "
             "doctor` says more";
    default:
      return plain;
  }
}

}  // namespace purlin::gpu
