// SPDX-License-Identifier: Apache-2.0
// The CUDA driver functions that Purlin calls, bound at run time from libcuda.so.1, and the meaning
// of their error codes.
//
// Symbols are named with their versions: cuda.h maps plain names to the newest version, and the
// binary must also run on older drivers. Tests fill the table with a fake. Thread-safety: immutable
// after load. Failure: kUnavailable reports that there is no driver and how to get one.
#pragma once

#include "base/status.h"

#include <cuda.h>

#include <string>
#include <string_view>

namespace purlin::gpu {

struct CudaDriver {
#define PURLIN_CUDA_FUNCTIONS(X)  \
  X(cuInit)                       \
  X(cuDriverGetVersion)           \
  X(cuGetErrorName)               \
  X(cuGetErrorString)             \
  X(cuDeviceGetCount)             \
  X(cuDeviceGet)                  \
  X(cuDeviceGetName)              \
  X(cuDeviceTotalMem_v2)          \
  X(cuDeviceGetAttribute)         \
  X(cuDeviceGetPCIBusId)          \
  X(cuDevicePrimaryCtxRetain)     \
  X(cuDevicePrimaryCtxRelease_v2) \
  X(cuCtxSetCurrent)              \
  X(cuCtxGetCurrent)              \
  X(cuCtxGetDevice)               \
  X(cuCtxPushCurrent_v2)          \
  X(cuCtxPopCurrent_v2)           \
  X(cuMemAlloc_v2)                \
  X(cuMemFree_v2)                 \
  X(cuMemHostAlloc)               \
  X(cuMemHostGetDevicePointer_v2) \
  X(cuMemFreeHost)                \
  X(cuMemcpyHtoD_v2)              \
  X(cuMemcpyDtoH_v2)              \
  X(cuMemcpyDtoD_v2)              \
  X(cuMemsetD8Async)              \
  X(cuStreamCreate)               \
  X(cuStreamDestroy_v2)           \
  X(cuStreamSynchronize)          \
  X(cuStreamIsCapturing)          \
  X(cuEventCreate)                \
  X(cuEventDestroy_v2)            \
  X(cuEventRecord)                \
  X(cuEventQuery)                 \
  X(cuModuleLoadDataEx)           \
  X(cuModuleUnload)               \
  X(cuModuleGetFunction)          \
  X(cuFuncGetAttribute)           \
  X(cuFuncSetAttribute)           \
  X(cuLaunchKernel)
#define PURLIN_DECLARE(function) decltype(&::function) function = nullptr;
  PURLIN_CUDA_FUNCTIONS(PURLIN_DECLARE)
#undef PURLIN_DECLARE
  // Declared here because the plain name means different versions in different headers.
  CUresult (*cuEventElapsedTime)(float*, CUevent, CUevent) = nullptr;
  CUresult (*cuDeviceGetUuid)(CUuuid*, CUdevice) = nullptr;
  // Newer drivers only; nullptr where absent.
  CUresult (*cuLaunchKernelEx)(const CUlaunchConfig*, CUfunction, void**, void**) = nullptr;
  CUresult (*cuFuncGetParamInfo)(CUfunction, size_t, size_t*, size_t*) = nullptr;
  CUresult (*cuFuncLoad)(CUfunction) = nullptr;
  CUresult (*cuStreamWaitValue32)(CUstream, CUdeviceptr, cuuint32_t, unsigned int) = nullptr;
  CUresult (*cuStreamBeginCapture_v2)(CUstream, CUstreamCaptureMode) = nullptr;
  CUresult (*cuStreamEndCapture)(CUstream, CUgraph*) = nullptr;
  CUresult (*cuGraphInstantiateWithFlags)(CUgraphExec*, CUgraph, unsigned long long) = nullptr;
  CUresult (*cuGraphUpload)(CUgraphExec, CUstream) = nullptr;
  CUresult (*cuGraphLaunch)(CUgraphExec, CUstream) = nullptr;
  CUresult (*cuGraphExecDestroy)(CUgraphExec) = nullptr;
  CUresult (*cuGraphDestroy)(CUgraph) = nullptr;
  // With the types of tensor_map.h, because headers before CUDA 12.0 do not declare it.
  CUresult (*cuTensorMapEncodeTiled)(void* map, int dtype, cuuint32_t rank, void* address,
                                     const cuuint64_t* extents, const cuuint64_t* strides,
                                     const cuuint32_t* box, const cuuint32_t* element_strides,
                                     int interleave, int swizzle, int l2_promotion,
                                     int fill) = nullptr;
};

Result<CudaDriver> load_cuda_driver();

// kInvalid when the request is at fault, kUnavailable when the machine is, kFailed when the device
// or its context is lost.
Code cuda_error_code(CUresult result);
// "WHAT: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered); ADVICE".
Status cuda_failure(const CudaDriver& driver, std::string_view what, CUresult result);

}  // namespace purlin::gpu
