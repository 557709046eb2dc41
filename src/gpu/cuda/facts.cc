// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/facts.h"

#include "base/text.h"

#include <cctype>

namespace purlin::gpu {
namespace {

std::string format_uuid(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

std::string pci_bus_id(const CudaDriver& driver, CUdevice device) {
  char text[32] = {};
  return driver.cuDeviceGetPCIBusId(text, sizeof text - 1, device) == CUDA_SUCCESS ? text : "";
}

std::string parse_kernel_module_version(std::string_view text) {
  // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (…)"
  const std::string_view line = text.substr(0, text.find('\n'));
  for (const std::string& word : split(line, ' ')) {
    bool version = !word.empty() && word.find('.') != std::string::npos;
    for (const char c : word)
      version = version && (c == '.' || std::isdigit(static_cast<unsigned char>(c)) != 0);
    if (version) return word;
  }
  return "";
}

Result<DeviceInfo> describe_cuda_device(const CudaDriver& driver, int index,
                                        const std::string& driver_version,
                                        const std::string& toolkit) {
  CUdevice device = 0;
  if (const CUresult result = driver.cuDeviceGet(&device, index); result != CUDA_SUCCESS)
    return cuda_failure(driver, fmt::format("opening cuda:{}", index), result);
  const auto fact = [&](CUdevice_attribute attribute) {
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value : 0;
  };
  DeviceInfo info;
  info.id = fmt::format("cuda:{}", index);
  info.backend = "cuda";
  info.kind = "gpu";
  info.vendor = "NVIDIA";
  info.driver = driver_version;
  info.toolkit = toolkit;
  char name[256] = {};
  if (driver.cuDeviceGetName(name, sizeof name - 1, device) == CUDA_SUCCESS) info.name = name;
  info.arch = fmt::format("sm_{}{}", fact(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                          fact(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  CUuuid uuid{};
  if (driver.cuDeviceGetUuid != nullptr && driver.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS)
    info.uuid = format_uuid(uuid);
  info.compute_units = fact(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.clock_mhz = fact(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000.0;  // kHz
  info.memory_clock_mhz = fact(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1000.0;
  info.memory_bus_bits = fact(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  std::size_t memory = 0;
  if (driver.cuDeviceTotalMem_v2(&memory, device) == CUDA_SUCCESS) info.memory_bytes = memory;
  info.l2_bytes = static_cast<std::uint64_t>(fact(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  info.shared_memory_per_block = fact(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (info.shared_memory_per_block == 0)
    info.shared_memory_per_block = fact(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  info.shared_memory_per_unit = fact(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  info.registers_per_block = fact(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  info.registers_per_unit = fact(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  info.warp_size = fact(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  info.max_threads_per_block = fact(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  info.max_threads_per_unit = fact(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  info.max_block = {fact(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
                    fact(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                    fact(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)};
  info.max_grid = {fact(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
                   fact(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                   fact(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)};
  return info;
}

}  // namespace purlin::gpu
