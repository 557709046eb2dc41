// SPDX-License-Identifier: Apache-2.0
#include "profile/ops/cuda_errors.h"

#include <algorithm>
#include <string_view>

namespace purlin::profile {
namespace {

struct CudaErrorName {
  std::int64_t code;
  std::string_view name;
};
// Those that a launch can return.
constexpr CudaErrorName kCudaErrors[] = {{1, "cudaErrorInvalidValue"},
                                         {2, "cudaErrorMemoryAllocation"},
                                         {3, "cudaErrorInitializationError"},
                                         {4, "cudaErrorCudartUnloading"},
                                         {7, "cudaErrorLaunchOutOfResources"},
                                         {9, "cudaErrorInvalidConfiguration"},
                                         {13, "cudaErrorInvalidSymbol"},
                                         {52, "cudaErrorMissingConfiguration"},
                                         {65, "cudaErrorLaunchMaxDepthExceeded"},
                                         {98, "cudaErrorInvalidDeviceFunction"},
                                         {100, "cudaErrorNoDevice"},
                                         {101, "cudaErrorInvalidDevice"},
                                         {200, "cudaErrorInvalidKernelImage"},
                                         {201, "cudaErrorDeviceUninitialized"},
                                         {209, "cudaErrorNoKernelImageForDevice"},
                                         {218, "cudaErrorInvalidPtx"},
                                         {222, "cudaErrorUnsupportedPtxVersion"},
                                         {400, "cudaErrorInvalidResourceHandle"},
                                         {500, "cudaErrorSymbolNotFound"},
                                         {700, "cudaErrorIllegalAddress"},
                                         {701, "cudaErrorLaunchOutOfResources"},
                                         {702, "cudaErrorLaunchTimeout"},
                                         {709, "cudaErrorContextIsDestroyed"},
                                         {710, "cudaErrorAssert"},
                                         {715, "cudaErrorIllegalInstruction"},
                                         {716, "cudaErrorMisalignedAddress"},
                                         {717, "cudaErrorInvalidAddressSpace"},
                                         {718, "cudaErrorInvalidPc"},
                                         {719, "cudaErrorLaunchFailure"},
                                         {720, "cudaErrorCooperativeLaunchTooLarge"},
                                         {800, "cudaErrorNotPermitted"},
                                         {801, "cudaErrorNotSupported"},
                                         {900, "cudaErrorStreamCaptureUnsupported"},
                                         {901, "cudaErrorStreamCaptureInvalidated"},
                                         {905, "cudaErrorStreamCaptureImplicit"},
                                         {906, "cudaErrorCapturedEvent"},
                                         {999, "cudaErrorUnknown"}};

}  // namespace

std::string cuda_error_name(std::int64_t code) {
  const auto* const found =
      std::find_if(std::begin(kCudaErrors), std::end(kCudaErrors),
                   [code](const CudaErrorName& one) { return one.code == code; });
  return found == std::end(kCudaErrors) ? std::string() : std::string(found->name);
}

}  // namespace purlin::profile
