// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/cuda/devices.h"

#include "profile/capture/recording/json_text.h"

#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

namespace purlin::profile::capture::cuda {
namespace {

struct Driver {
  decltype(&cuDeviceGetCount) get_count = nullptr;
  decltype(&cuDeviceGet) get = nullptr;
  decltype(&cuDeviceGetName) get_name = nullptr;
  decltype(&cuDeviceGetAttribute) get_attribute = nullptr;
  decltype(&cuDeviceTotalMem) total_memory = nullptr;
  decltype(&cuDeviceGetUuid) get_uuid = nullptr;

  bool load() {
    void* handle = ::dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    if (handle == nullptr) return false;
    const auto bind = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(handle, name));
      return function != nullptr;
    };
    return bind(get_count, "cuDeviceGetCount") && bind(get, "cuDeviceGet") &&
           bind(get_name, "cuDeviceGetName") && bind(get_attribute, "cuDeviceGetAttribute") &&
           bind(total_memory, "cuDeviceTotalMem_v2") &&
           (bind(get_uuid, "cuDeviceGetUuid_v2") || bind(get_uuid, "cuDeviceGetUuid"));
  }
};

// The driver's version as its kernel module states it: "580.159.04".
std::string driver_version() {
  char text[64] = {};
  std::FILE* file = std::fopen("/sys/module/nvidia/version", "re");
  if (file == nullptr) return "";
  const std::size_t got = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  std::string version(text, got);
  while (!version.empty() && version.back() == '\n') version.pop_back();
  return version;
}

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

std::string describe(const Driver& driver, int index, const std::string& version) {
  CUdevice device = 0;
  if (driver.get(&device, index) != CUDA_SUCCESS) return "{}";
  char name[256] = {};
  driver.get_name(name, sizeof name - 1, device);
  const auto fact = [&](CUdevice_attribute what) {
    int value = 0;
    return driver.get_attribute(&value, what, device) == CUDA_SUCCESS ? value : 0;
  };
  JsonText json;
  json.text("id", "cuda:" + std::to_string(index))
      .text("backend", "cuda")
      .text("kind", "gpu")
      .text("name", name)
      .text("vendor", "NVIDIA")
      .text("arch", "sm_" + std::to_string(fact(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) +
                        std::to_string(fact(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)))
      .text("driver", version)
      .integer("compute_units", fact(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT))
      .real("clock_mhz", fact(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000.0)
      .real("memory_clock_mhz", fact(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1000.0)
      .integer("memory_bus_bits", fact(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH))
      .integer("l2_bytes", fact(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE))
      .integer("shared_memory_per_unit_bytes",
               fact(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR))
      .integer("shared_memory_per_block_bytes",
               fact(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
      .integer("registers_per_unit", fact(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR))
      .integer("registers_per_block", fact(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK))
      .integer("warp_size", fact(CU_DEVICE_ATTRIBUTE_WARP_SIZE))
      .integer("max_threads_per_block", fact(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))
      .integer("max_threads_per_unit", fact(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  std::size_t memory = 0;
  if (driver.total_memory(&memory, device) == CUDA_SUCCESS)
    json.integer("memory_bytes", static_cast<std::int64_t>(memory));
  CUuuid uuid = {};
  if (driver.get_uuid(&uuid, device) == CUDA_SUCCESS) json.text("uuid", uuid_text(uuid));
  return json.finish();
}

}  // namespace

std::string sharing_of_devices() {
  Driver driver;
  int count = 0;
  if (!driver.load() || driver.get_count(&count) != CUDA_SUCCESS) return "";
  bool shared = false, part = false;
  for (int i = 0; i < std::min(count, 1024); ++i) {
    CUdevice device = 0;
    char name[256] = {};
    int value = 0;
    if (driver.get(&device, i) != CUDA_SUCCESS) continue;
    shared = shared || (driver.get_attribute(&value, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device) ==
                            CUDA_SUCCESS &&
                        value != 0);
    part = part || (driver.get_name(name, sizeof name - 1, device) == CUDA_SUCCESS &&
                    std::strstr(name, " MIG ") != nullptr);
  }
  std::string text;
  if (shared)
    text = "the process is a client of MPS: others may run on the device at the same time";
  if (part)
    text +=
        std::string(text.empty() ? "" : "; ") + "the device is an instance of MIG, a part of a GPU";
  return text;
}

std::string describe_devices() {
  Driver driver;
  int count = 0;
  if (!driver.load() || driver.get_count(&count) != CUDA_SUCCESS) return "[]";
  const std::string version = driver_version();
  std::string all;
  for (int i = 0; i < std::min(count, 1024); ++i)
    all += (all.empty() ? "" : ",") + describe(driver, i, version);
  return '[' + all + ']';
}

Contexts primary_contexts() {
  void* handle = ::dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return Contexts::kUnknown;
  const auto count =
      reinterpret_cast<decltype(&cuDeviceGetCount)>(::dlsym(handle, "cuDeviceGetCount"));
  const auto state = reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(
      ::dlsym(handle, "cuDevicePrimaryCtxGetState"));
  int devices = 0;
  if (count == nullptr || state == nullptr || count(&devices) != CUDA_SUCCESS)
    return Contexts::kUnknown;
  for (int device = 0; device < devices; ++device) {
    unsigned flags = 0;
    int active = 0;
    if (state(device, &flags, &active) == CUDA_SUCCESS && active != 0) return Contexts::kSome;
  }
  return Contexts::kNone;
}

}  // namespace purlin::profile::capture::cuda
