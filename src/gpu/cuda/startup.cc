// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/startup.h"

#include "base/files.h"
#include "gpu/cuda/facts.h"

namespace purlin::gpu {

Result<CudaStartup> start_cuda() {
  CudaStartup startup;
  PURLIN_ASSIGN(startup.driver, load_cuda_driver());
  const CudaDriver& driver = startup.driver;
  CUresult result = driver.cuInit(0);
  if (result == CUDA_SUCCESS) result = driver.cuDeviceGetCount(&startup.count);
  if (result == CUDA_SUCCESS && startup.count == 0) result = CUDA_ERROR_NO_DEVICE;
  if (result != CUDA_SUCCESS) {
    const Status status = cuda_failure(driver, "starting CUDA", result);
    return Status(Code::kUnavailable, status.message());
  }
  int version = 0;
  driver.cuDriverGetVersion(&version);  // 13000 for CUDA 13.0
  if (auto nvrtc = Nvrtc::load(version / 1000); nvrtc.is_ok())
    startup.tools.nvrtc = std::move(*nvrtc);
  else
    startup.tools.nvrtc_problem = nvrtc.status();
  startup.tools.open_counters = [major = version / 1000] { return open_hardware_counters(major); };
  if (auto nvml = Nvml::load(); nvml.is_ok()) startup.tools.nvml = std::move(*nvml);
  startup.driver_version =
      startup.tools.nvml != nullptr
          ? startup.tools.nvml->driver_version()
          : parse_kernel_module_version(
                read_file("/proc/driver/nvidia/version", 64 << 10).value_or(""));
  return startup;
}

Result<DeviceInfo> describe_cuda_device(const CudaStartup& startup, int index) {
  return describe_cuda_device(startup.driver, index, startup.driver_version,
                              startup.tools.nvrtc != nullptr ? startup.tools.nvrtc->version() : "");
}

}  // namespace purlin::gpu
