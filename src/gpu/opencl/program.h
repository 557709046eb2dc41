// SPDX-License-Identifier: Apache-2.0
// OpenCL programs: source to a self-contained binary, and a binary back to a kernel.
//
// Free functions over a context, so compile_opencl is as thread-safe as clBuildProgram is on
// different programs: fully, by the standard. Failure: kInvalid with the compiler's log.
#pragma once

#include "gpu/device.h"
#include "gpu/opencl/functions.h"

#include <memory>

namespace purlin::gpu {

class OpenClKernel : public Kernel {
 public:
  OpenClKernel(ClOwned<cl_program> program, ClOwned<cl_kernel> kernel, cl_uint arguments)
      : program_(std::move(program)), kernel_(std::move(kernel)), arguments_(arguments) {}
  cl_kernel handle() const { return kernel_.get(); }
  cl_program program() const { return program_.get(); }
  cl_uint arguments() const { return arguments_; }

 private:
  ClOwned<cl_program> program_;
  ClOwned<cl_kernel> kernel_;
  cl_uint arguments_;
};

Result<Binary> compile_opencl(const OpenClFunctions& cl, cl_context context, cl_device_id device,
                              const CompileRequest& request);
Result<std::unique_ptr<OpenClKernel>> load_opencl_kernel(const OpenClFunctions& cl,
                                                         cl_context context, cl_device_id device,
                                                         const Binary& binary);

}  // namespace purlin::gpu
