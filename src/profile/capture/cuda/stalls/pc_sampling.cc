// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/stalls/pc_sampling.h"

#include <dlfcn.h>
#include <type_traits>

namespace purlin::profile::capture::cuda {
namespace {

constexpr std::uint32_t kMinSamplingVersion = 22;  // CUDA 12.4

}  // namespace

bool bind_pc_sampling(const Cupti& cupti, PcSampling& sampling, std::string& reason) {
  if (cupti.version < kMinSamplingVersion)
    return reason = cupti.path + " is older than CUDA 12.4's", false;
  bool whole = true;
  const auto bind = [&](const char* name, auto& function) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(cupti.handle, name));
    whole = whole && function != nullptr;
  };
  bind("cuptiPCSamplingEnable", sampling.enable);
  bind("cuptiPCSamplingDisable", sampling.disable);
  bind("cuptiPCSamplingSetConfigurationAttribute", sampling.configure);
  bind("cuptiPCSamplingGetNumStallReasons", sampling.reason_count);
  bind("cuptiPCSamplingGetStallReasons", sampling.reasons);
  bind("cuptiPCSamplingGetData", sampling.get_data);
  bind("cuptiRegisterComputeCrcCallback", sampling.register_hash);
  bind("cuptiSubscribe", sampling.subscribe);
  bind("cuptiUnsubscribe", sampling.unsubscribe);
  bind("cuptiEnableCallback", sampling.enable_callback);
  bind("cuptiGetDeviceId", sampling.device_of);
  if (!whole) reason = cupti.path + " lacks functions of PC sampling";
  return whole;
}

}  // namespace purlin::profile::capture::cuda
