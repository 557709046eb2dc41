// SPDX-License-Identifier: Apache-2.0
// The facts that the driver reports about a CUDA device. Free functions without state; a fact that
// the driver does not know stays unknown.
#pragma once

#include "gpu/cuda/driver.h"
#include "model/device/device.h"

#include <string>

namespace purlin::gpu {

// `driver_version` and `toolkit` come from NVML and NVRTC; "" where those are absent.
Result<DeviceInfo> describe_cuda_device(const CudaDriver& driver, int index,
                                        const std::string& driver_version,
                                        const std::string& toolkit);
// "00000000:3B:00.0", as NVML wants it; "" when unknown.
std::string pci_bus_id(const CudaDriver& driver, CUdevice device);
// From the text of /proc/driver/nvidia/version, for machines without NVML: "580.159.04" or "".
std::string parse_kernel_module_version(std::string_view text);

}  // namespace purlin::gpu
