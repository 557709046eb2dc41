// SPDX-License-Identifier: Apache-2.0
// The start of CUDA: the driver, and the helpers that were found.
//
// Thread-safety: free functions. Failure: kUnavailable says what the machine lacks.
#pragma once

#include "gpu/app_context.h"
#include "gpu/cuda/device.h"

#include <memory>
#include <string>

namespace purlin::gpu {

struct CudaStartup {
  CudaDriver driver;
  CudaTools tools;
  int count = 0;               // devices
  std::string driver_version;  // "580.159.04"; "" not known
};

Result<CudaStartup> start_cuda();
Result<DeviceInfo> describe_cuda_device(const CudaStartup& startup, int index);

// AppContext on `context`, which is of the device that `info` describes.
std::unique_ptr<AppContext> make_cuda_app_context(CudaStartup startup, CUcontext context,
                                                  DeviceInfo info);

}  // namespace purlin::gpu
