// SPDX-License-Identifier: Apache-2.0
// The OpenCL functions Purlin calls, bound at run time from the ICD loader (libOpenCL.so.1), and
// the names of their error codes.
//
// All functions are in OpenCL 1.2, which every current driver offers. Thread-safety: immutable
// after load. Failure: kUnavailable with the package that contains the loader.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120

#include "base/status.h"

#include <CL/cl.h>

#include <string_view>

namespace purlin::gpu {

struct OpenClFunctions {
#define PURLIN_OPENCL_FUNCTIONS(X) \
  X(clGetPlatformIDs)              \
  X(clGetPlatformInfo)             \
  X(clGetDeviceIDs)                \
  X(clGetDeviceInfo)               \
  X(clCreateContext)               \
  X(clReleaseContext)              \
  X(clGetContextInfo)              \
  X(clCreateCommandQueue)          \
  X(clReleaseCommandQueue)         \
  X(clCreateBuffer)                \
  X(clCreateSubBuffer)             \
  X(clReleaseMemObject)            \
  X(clGetMemObjectInfo)            \
  X(clCreateProgramWithSource)     \
  X(clCreateProgramWithBinary)     \
  X(clBuildProgram)                \
  X(clGetProgramInfo)              \
  X(clGetProgramBuildInfo)         \
  X(clReleaseProgram)              \
  X(clCreateKernel)                \
  X(clSetKernelArg)                \
  X(clGetKernelInfo)               \
  X(clGetKernelWorkGroupInfo)      \
  X(clReleaseKernel)               \
  X(clEnqueueReadBuffer)           \
  X(clEnqueueWriteBuffer)          \
  X(clEnqueueCopyBuffer)           \
  X(clEnqueueFillBuffer)           \
  X(clEnqueueMarkerWithWaitList)   \
  X(clEnqueueNDRangeKernel)        \
  X(clGetEventInfo)                \
  X(clGetEventProfilingInfo)       \
  X(clReleaseEvent)                \
  X(clFlush)                       \
  X(clFinish)
#define PURLIN_DECLARE(function) decltype(&::function) function = nullptr;
  PURLIN_OPENCL_FUNCTIONS(PURLIN_DECLARE)
#undef PURLIN_DECLARE
};

Result<OpenClFunctions> load_opencl();

// CL_INVALID_WORK_GROUP_SIZE -> "CL_INVALID_WORK_GROUP_SIZE"; an unknown code -> "error -1234".
std::string opencl_error_name(cl_int code);
// What the code means for the caller: kInvalid when the request is at fault, kUnavailable when
// memory is short, kFailed when the device or the driver is.
Code opencl_error_code(cl_int code);
Status opencl_failure(std::string_view what, cl_int code);

// Owns an OpenCL object; releases it with the function it was made with.
template <class Handle>
class ClOwned {
 public:
  using Release = cl_int (*)(Handle);
  ClOwned() = default;
  ClOwned(Handle handle, Release release) : handle_(handle), release_(release) {}
  ClOwned(ClOwned&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), release_(other.release_) {}
  ClOwned& operator=(ClOwned&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~ClOwned() {
    if (handle_ != nullptr) release_(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace purlin::gpu
