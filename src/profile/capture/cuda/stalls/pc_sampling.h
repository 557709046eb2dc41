// SPDX-License-Identifier: Apache-2.0
// CUPTI's program counter sampling as a table of functions, which tests replace with a fake. Plain
// data; immutable once bound.
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

// Before the hooks are installed, which would treat Purlin as a client. False with a reason as text
// if this CUPTI cannot be used: the records of 12.4 and later have another size than earlier ones.
bool bind_pc_sampling(const Cupti& cupti, PcSampling& sampling, std::string& reason);

}  // namespace purlin::profile::capture::cuda
