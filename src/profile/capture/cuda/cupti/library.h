// SPDX-License-Identifier: Apache-2.0
// The CUPTI of this process: found, opened, bound. A copy that is already loaded is taken before
// any other, then the one that belongs to the CUDA runtime or the PyTorch that is loaded: two
// copies in one process disturb each other.
//
// Immutable after load_cupti. Plain data.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::profile::capture::cuda {

struct Cupti {
  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetResultString) get_result_string = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityEnableContext) enable_context = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityDisableContext) disable_context = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiFinalize) finalize = nullptr;
  // These may be missing.
  decltype(&cuptiActivityEnableLatencyTimestamps) latency_timestamps = nullptr;
  decltype(&cuptiActivityRegisterTimestampCallback) register_timestamp = nullptr;
  decltype(&cuptiActivityEnableAndDump) enable_and_dump = nullptr;
  CUptiResult (*enable_runtime_api)(CUpti_CallbackId, std::uint8_t) = nullptr;  // 12.5
  CUptiResult (*enable_driver_api)(CUpti_CallbackId, std::uint8_t) = nullptr;
  // Functions that serve one client in a process only; some may be missing.
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiEnableCallback) enable_callback = nullptr;
  CUptiResult (*subscribe_v2)(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, void*) = nullptr;
  CUptiResult (*range_profiler)(void*) = nullptr;
  CUptiResult (*profiler_session)(void*) = nullptr;
  CUptiResult (*pm_sampling)(void*) = nullptr;
  CUptiResult (*pc_sampling)(void*) = nullptr;
  void* handle = nullptr;  // the loader's, for what is not here
  std::string path;
  std::uint32_t version = 0;

  std::string text_of(CUptiResult result) const;  // "CUPTI_ERROR_… (15)"
};

// False with a reason for a person when there is none that can be used.
bool load_cupti(Cupti& cupti, std::string& reason);

// The paths of the copies that are loaded, in the order of loading, and one of them.
std::vector<std::string> loaded_cuptis();
bool open_loaded_cupti(const std::string& path, Cupti& cupti, std::string& reason);

}  // namespace purlin::profile::capture::cuda
