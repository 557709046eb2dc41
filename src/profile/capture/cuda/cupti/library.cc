// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/cupti/library.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>
#include <vector>

namespace purlin::profile::capture::cuda {
namespace {

constexpr std::uint32_t kMinVersion = 19;  // CUDA 12.0

int collect_name(dl_phdr_info* info, std::size_t, void* names) {
  if (info->dlpi_name != nullptr && info->dlpi_name[0] != '\0')
    static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
  return 0;
}

std::string file_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool begins(const std::string& text, const char* prefix) {
  return text.compare(0, std::strlen(prefix), prefix) == 0;
}

// CUPTI must not be newer than the driver, nor of another major version than the runtime in use.
int wanted_major(const std::vector<std::string>& loaded) {
  for (const std::string& path : loaded) {
    const std::string file = file_of(path);
    if (begins(file, "libcudart.so."))
      return std::atoi(file.c_str() + std::strlen("libcudart.so."));
  }
  int version = 0;
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (driver != nullptr) {
    auto* get =
        reinterpret_cast<decltype(&cuDriverGetVersion)>(::dlsym(driver, "cuDriverGetVersion"));
    if (get == nullptr || get(&version) != CUDA_SUCCESS) version = 0;
  }
  return version / 1000;
}

// CUPTI's places relative to other CUDA libraries: in the same folder, in the toolkit, and in the
// layouts of NVIDIA's Python packages.
std::vector<std::string> candidates(const std::vector<std::string>& loaded) {
  const int major = wanted_major(loaded);
  std::vector<std::string> files = {"libcupti.so.13", "libcupti.so.12"};
  if (major == 12) files = {"libcupti.so.12", "libcupti.so.13"};
  if (major > 13) files.insert(files.begin(), "libcupti.so." + std::to_string(major));
  std::vector<std::string> result;
  if (const char* named = ::secure_getenv("PURLIN_CUPTI"); named != nullptr)
    result.emplace_back(named);
  std::vector<std::string> folders;
  for (const std::string& path : loaded) {
    const std::string file = file_of(path);
    if (path.find('/') == std::string::npos) continue;
    const std::string folder = path.substr(0, path.rfind('/'));
    if (begins(file, "libcudart.so") || begins(file, "libcublas") || begins(file, "libnvrtc")) {
      folders.push_back(folder);
      folders.push_back(folder + "/../../cuda_cupti/lib");
      folders.push_back(folder + "/../extras/CUPTI/lib64");
    } else if (begins(file, "libtorch")) {
      folders.push_back(folder + "/../../nvidia/cuda_cupti/lib");
      folders.push_back(folder + "/../../nvidia/cu13/lib");
    }
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = ::secure_getenv(variable)) {
      folders.push_back(std::string(home) + "/lib64");
      folders.push_back(std::string(home) + "/extras/CUPTI/lib64");
    }
  }
  for (const std::string& file : files) {
    for (const std::string& folder : folders) result.push_back(folder + '/' + file);
    result.push_back(file);
    result.push_back("/usr/local/cuda/lib64/" + file);
    result.push_back("/usr/local/cuda/extras/CUPTI/lib64/" + file);
  }
  return result;
}

void* open_cupti(std::string& path) {
  std::vector<std::string> loaded;
  ::dl_iterate_phdr(&collect_name, &loaded);
  for (const std::string& each : loaded_cuptis())
    if (void* handle = ::dlopen(each.c_str(), RTLD_NOLOAD | RTLD_LAZY)) return path = each, handle;
  for (const std::string& each : candidates(loaded)) {
    if (each.find('/') != std::string::npos && ::access(each.c_str(), R_OK) != 0) continue;
    if (void* handle = ::dlopen(each.c_str(), RTLD_LAZY | RTLD_LOCAL)) return path = each, handle;
  }
  return nullptr;
}

template <class Function>
bool bind(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  return function != nullptr;
}

}  // namespace

std::string Cupti::text_of(CUptiResult result) const {
  const char* text = nullptr;
  if (get_result_string == nullptr || get_result_string(result, &text) != CUPTI_SUCCESS ||
      text == nullptr)
    text = "CUPTI error";
  return std::string(text) + " (" + std::to_string(static_cast<int>(result)) + ")";
}

namespace {

bool bind_all(void* handle, Cupti& cupti, std::string& reason) {
  cupti.handle = handle;
  bool whole = bind(handle, "cuptiGetVersion", cupti.get_version);
  whole &= bind(handle, "cuptiGetResultString", cupti.get_result_string);
  whole &= bind(handle, "cuptiActivityRegisterCallbacks", cupti.register_callbacks);
  whole &= bind(handle, "cuptiActivityEnable", cupti.enable);
  whole &= bind(handle, "cuptiActivityEnableContext", cupti.enable_context);
  whole &= bind(handle, "cuptiActivityDisable", cupti.disable);
  whole &= bind(handle, "cuptiActivityDisableContext", cupti.disable_context);
  whole &= bind(handle, "cuptiActivityFlushAll", cupti.flush_all);
  whole &= bind(handle, "cuptiActivityGetNextRecord", cupti.next_record);
  whole &= bind(handle, "cuptiActivityGetNumDroppedRecords", cupti.dropped_records);
  whole &= bind(handle, "cuptiFinalize", cupti.finalize);
  bind(handle, "cuptiActivityRegisterTimestampCallback", cupti.register_timestamp);
  bind(handle, "cuptiActivityEnableLatencyTimestamps", cupti.latency_timestamps);
  bind(handle, "cuptiSubscribe", cupti.subscribe);
  bind(handle, "cuptiUnsubscribe", cupti.unsubscribe);
  bind(handle, "cuptiEnableCallback", cupti.enable_callback);
  bind(handle, "cuptiSubscribe_v2", cupti.subscribe_v2);
  bind(handle, "cuptiRangeProfilerEnable", cupti.range_profiler);
  bind(handle, "cuptiProfilerBeginSession", cupti.profiler_session);
  bind(handle, "cuptiPmSamplingEnable", cupti.pm_sampling);
  bind(handle, "cuptiPCSamplingEnable", cupti.pc_sampling);
  bind(handle, "cuptiActivityEnableAndDump", cupti.enable_and_dump);
  bind(handle, "cuptiActivityEnableRuntimeApi", cupti.enable_runtime_api);
  bind(handle, "cuptiActivityEnableDriverApi", cupti.enable_driver_api);
  if (!whole || cupti.get_version(&cupti.version) != CUPTI_SUCCESS || cupti.version < kMinVersion) {
    reason = cupti.path + " is older than CUDA 12.0's; Purlin needs that or newer";
    return false;
  }
  return true;
}

}  // namespace

bool load_cupti(Cupti& cupti, std::string& reason) {
  void* handle = open_cupti(cupti.path);
  if (handle != nullptr) return bind_all(handle, cupti, reason);
  reason =
      "libcupti.so.13 or .12 was not found; install the CUDA toolkit's CUPTI (or the Python "
      "package nvidia-cuda-cupti), or name it in PURLIN_CUPTI";
  return false;
}

std::vector<std::string> loaded_cuptis() {
  std::vector<std::string> loaded, result;
  ::dl_iterate_phdr(&collect_name, &loaded);
  for (const std::string& each : loaded)
    if (begins(file_of(each), "libcupti.so")) result.push_back(each);
  return result;
}

bool open_loaded_cupti(const std::string& path, Cupti& cupti, std::string& reason) {
  cupti.path = path;
  void* handle = ::dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  if (handle != nullptr) return bind_all(handle, cupti, reason);
  reason = "it is being unloaded";
  return false;
}

}  // namespace purlin::profile::capture::cuda
