// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/device.h"
#include "gpu/cuda/startup.h"

namespace purlin::gpu {
namespace {

class CudaBackend : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }

  Result<std::vector<DeviceInfo>> devices() override {
    PURLIN_ASSIGN(const CudaStartup started, start_cuda());
    std::vector<DeviceInfo> infos;
    for (int index = 0; index < started.count; ++index) {
      PURLIN_ASSIGN(DeviceInfo info, describe_cuda_device(started, index));
      infos.push_back(std::move(info));
    }
    return infos;
  }

  Result<std::unique_ptr<Device>> open(int index) override {
    PURLIN_ASSIGN(CudaStartup started, start_cuda());
    if (index < 0 || index >= started.count)
      return error(Code::kNotFound, "no device cuda:{}; there are {}, from cuda:0", index,
                   started.count);
    PURLIN_ASSIGN(DeviceInfo info, describe_cuda_device(started, index));
    PURLIN_ASSIGN(auto device, CudaDevice::open(started.driver, index, std::move(info),
                                                std::move(started.tools)));
    return std::unique_ptr<Device>(std::move(device));
  }
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace purlin::gpu
