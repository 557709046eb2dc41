// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/counter_host.h"

#include <dlfcn.h>

namespace purlin::gpu {

bool CounterHost::bind(void* cupti, std::string& reason) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(cupti, name));
    return function != nullptr;
  };
  if (find(initialize_, "cuptiProfilerHostInitialize") &&
      find(deinitialize_, "cuptiProfilerHostDeinitialize") &&
      find(add_metrics_, "cuptiProfilerHostConfigAddMetrics") &&
      find(image_size_, "cuptiProfilerHostGetConfigImageSize") &&
      find(image_, "cuptiProfilerHostGetConfigImage") &&
      find(passes_, "cuptiProfilerHostGetNumOfPasses") &&
      find(evaluate_, "cuptiProfilerHostEvaluateToGpuValues") &&
      find(chips_, "cuptiProfilerHostGetSupportedChips"))
    return true;
  reason = "its CUPTI has no range profiler; CUPTI of CUDA 12.8 and newer has one";
  return false;
}

CUptiResult CounterHost::prepare(const std::string& chip,
                                 const std::vector<std::string_view>& metrics,
                                 CounterConfig& config) const {
  CUpti_Profiler_Host_Initialize_Params host = {};
  host.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = chip.c_str();
  CUptiResult result = initialize_(&host);
  if (result != CUPTI_SUCCESS) return result;
  config.metrics = metrics;
  config.names.clear();
  for (const std::string_view metric : metrics) config.names.push_back(metric.data());
  config.host = host.pHostObject;

  CUpti_Profiler_Host_ConfigAddMetrics_Params add = {};
  add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
  add.pHostObject = config.host;
  add.ppMetricNames = config.names.data();
  add.numMetrics = config.names.size();
  result = add_metrics_(&add);
  CUpti_Profiler_Host_GetConfigImageSize_Params size = {};
  size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
  size.pHostObject = config.host;
  if (result == CUPTI_SUCCESS) result = image_size_(&size);
  if (result == CUPTI_SUCCESS) {
    config.image.resize(size.configImageSize);
    CUpti_Profiler_Host_GetConfigImage_Params image = {};
    image.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
    image.pHostObject = config.host;
    image.configImageSize = config.image.size();
    image.pConfigImage = config.image.data();
    result = image_(&image);
  }
  if (result == CUPTI_SUCCESS) {
    CUpti_Profiler_Host_GetNumOfPasses_Params passes = {};
    passes.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
    passes.configImageSize = config.image.size();
    passes.pConfigImage = config.image.data();
    result = passes_(&passes);
    config.passes = passes.numOfPasses;
  }
  if (result == CUPTI_SUCCESS) return result;
  CUpti_Profiler_Host_Deinitialize_Params end = {};
  end.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
  end.pHostObject = config.host;
  deinitialize_(&end);
  config = {};
  return result;
}

CUptiResult CounterHost::evaluate(const CounterConfig& config,
                                  const std::vector<std::uint8_t>& image, std::size_t range,
                                  std::vector<double>& values) const {
  values.assign(config.names.size(), 0);
  std::vector<const char*> names = config.names;  // CUPTI's parameter is not const
  CUpti_Profiler_Host_EvaluateToGpuValues_Params to = {};
  to.structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE;
  to.pHostObject = config.host;
  to.pCounterDataImage = image.data();
  to.counterDataImageSize = image.size();
  to.rangeIndex = range;
  to.ppMetricNames = names.data();
  to.numMetrics = names.size();
  to.pMetricValues = values.data();
  return evaluate_(&to);
}

std::vector<std::string> CounterHost::chips() const {
  CUpti_Profiler_Host_GetSupportedChips_Params list = {};
  list.structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE;
  if (chips_(&list) != CUPTI_SUCCESS) return {};
  return {list.ppChipNames, list.ppChipNames + list.numChips};
}

}  // namespace purlin::gpu
