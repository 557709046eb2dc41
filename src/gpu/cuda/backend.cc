// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/facts.h"

namespace purlin::gpu {
namespace {

class CudaBackend : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }

  Result<std::vector<DeviceInfo>> devices() override {
    PURLIN_ASSIGN(const Started started, start());
    std::vector<DeviceInfo> infos;
    for (int index = 0; index < started.count; ++index) {
      PURLIN_ASSIGN(DeviceInfo info, describe(started, index));
      infos.push_back(std::move(info));
    }
    return infos;
  }

  Result<std::unique_ptr<Device>> open(int index) override {
    PURLIN_ASSIGN(Started started, start());
    if (index < 0 || index >= started.count)
      return error(Code::kNotFound, "no device cuda:{}; there are {}, from cuda:0", index,
                   started.count);
    PURLIN_ASSIGN(DeviceInfo info, describe(started, index));
    PURLIN_ASSIGN(auto device, CudaDevice::open(started.driver, index, std::move(info),
                                                std::move(started.tools)));
    return std::unique_ptr<Device>(std::move(device));
  }

 private:
  struct Started {
    CudaDriver driver;
    CudaTools tools;
    int count = 0;
    std::string driver_version;
  };

  static Result<Started> start() {
    Started started;
    PURLIN_ASSIGN(started.driver, load_cuda_driver());
    const CudaDriver& driver = started.driver;
    CUresult result = driver.cuInit(0);
    if (result == CUDA_SUCCESS) result = driver.cuDeviceGetCount(&started.count);
    if (result == CUDA_SUCCESS && started.count == 0) result = CUDA_ERROR_NO_DEVICE;
    if (result != CUDA_SUCCESS) {
      const Status status = cuda_failure(driver, "starting CUDA", result);
      return Status(Code::kUnavailable, status.message());
    }
    int version = 0;
    driver.cuDriverGetVersion(&version);  // 13000 for CUDA 13.0
    if (auto nvrtc = Nvrtc::load(version / 1000); nvrtc.is_ok())
      started.tools.nvrtc = std::move(*nvrtc);
    else
      started.tools.nvrtc_problem = nvrtc.status();
    if (auto nvml = Nvml::load(); nvml.is_ok()) started.tools.nvml = std::move(*nvml);
    started.driver_version =
        started.tools.nvml != nullptr
            ? started.tools.nvml->driver_version()
            : parse_kernel_module_version(
                  read_file("/proc/driver/nvidia/version", 64 << 10).value_or(""));
    return started;
  }

  static Result<DeviceInfo> describe(const Started& started, int index) {
    return describe_cuda_device(
        started.driver, index, started.driver_version,
        started.tools.nvrtc != nullptr ? started.tools.nvrtc->version() : "");
  }
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace purlin::gpu
