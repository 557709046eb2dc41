// SPDX-License-Identifier: Apache-2.0
// An OpenCL buffer and the windows on it that kernels get. An argument with an offset or an extent
// becomes a sub-buffer. It is made once, because a launch must not allocate. Belongs to one thread.
#pragma once

#include "gpu/device.h"
#include "gpu/opencl/functions.h"

#include <map>
#include <utility>

namespace purlin::gpu {

class OpenClBuffer : public Buffer {
 public:
  OpenClBuffer(const OpenClFunctions& cl, cl_mem memory, std::size_t bytes)
      : Buffer(bytes), cl_(cl), memory_(memory, cl.clReleaseMemObject) {}

  cl_mem memory() const { return memory_.get(); }
  // The window [offset, offset + extent); an extent of 0 reaches to the end.
  Result<cl_mem> window(std::size_t offset, std::size_t extent);

 private:
  const OpenClFunctions& cl_;
  ClOwned<cl_mem> memory_;
  std::map<std::pair<std::size_t, std::size_t>, ClOwned<cl_mem>> windows_;  // released first
};

inline Result<cl_mem> OpenClBuffer::window(std::size_t offset, std::size_t extent) {
  if (extent == 0) extent = bytes_ - offset;
  if (offset == 0 && extent == bytes_) return memory_.get();
  const auto key = std::make_pair(offset, extent);
  if (auto found = windows_.find(key); found != windows_.end()) return found->second.get();
  const cl_buffer_region region{offset, extent};
  cl_int code = CL_SUCCESS;
  cl_mem window = cl_.clCreateSubBuffer(memory_.get(), CL_MEM_READ_WRITE,
                                        CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  if (code != CL_SUCCESS)
    return opencl_failure(fmt::format("clCreateSubBuffer of {} bytes at {}", extent, offset), code);
  windows_.emplace(key, ClOwned<cl_mem>(window, cl_.clReleaseMemObject));
  return window;
}

}  // namespace purlin::gpu
