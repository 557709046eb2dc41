// SPDX-License-Identifier: Apache-2.0
// Tensor maps (CUtensorMap) for kernels that copy boxes by the tensor memory accelerator of sm_90
// and newer.
//
// Purlin checks the driver's rules itself, because the driver names no broken rule. Pure functions.
// Failure: kInvalid names the rule, kUnavailable if the driver has no tensor maps.
#pragma once

#include "base/status.h"
#include "gpu/cuda/driver.h"
#include "gpu/device.h"

#include <cstdint>

namespace purlin::gpu {

// A CUtensorMap, which a kernel takes by value as `const __grid_constant__`.
struct alignas(64) EncodedTensorMap {
  std::uint64_t opaque[16];
};

Result<EncodedTensorMap> encode_tensor_map(const CudaDriver& driver, const TensorMap& map,
                                           CUdeviceptr address);

}  // namespace purlin::gpu
