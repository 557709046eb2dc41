// SPDX-License-Identifier: Apache-2.0
// CUPTI's program counter sampling, as a table of functions: the seam behind which tests put a
// fake. Plain data.
#pragma once

#include "profile/capture/cuda/cupti/library.h"

#include <cupti_pcsampling.h>

#include <cstdint>
#include <string>

namespace purlin::profile::capture::cuda {

struct PcSampling {
  decltype(&cuptiPCSamplingEnable) enable = nullptr;
  decltype(&cuptiPCSamplingDisable) disable = nullptr;
  decltype(&cuptiPCSamplingSetConfigurationAttribute) configure = nullptr;
  decltype(&cuptiPCSamplingGetNumStallReasons) reason_count = nullptr;
  decltype(&cuptiPCSamplingGetStallReasons) reasons = nullptr;
  decltype(&cuptiPCSamplingGetData) get_data = nullptr;
  decltype(&cuptiRegisterComputeCrcCallback) register_hash = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiEnableCallback) enable_callback = nullptr;
  decltype(&cuptiGetDeviceId) device_of = nullptr;
};

// Before the hooks are in place, which would take Purlin for a client. False with a reason for a
// person when this CUPTI cannot be used: the records of 12.4 and later have another size than those
// before.
bool bind_pc_sampling(const Cupti& cupti, PcSampling& sampling, std::string& reason);

}  // namespace purlin::profile::capture::cuda
