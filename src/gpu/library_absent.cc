// SPDX-License-Identifier: Apache-2.0
// Replaces cuBLASLt in builds without its header.
#include "gpu/library_app_context.h"
#include "gpu/library_kernel.h"

namespace purlin::gpu {
namespace {

Status reason() {
  return error(Code::kUnavailable,
               "this purlin was built without cublasLt.h; build it where the CUDA toolkit is, or "
               "use an official bundle");
}

}  // namespace

Result<std::unique_ptr<LibraryRuntime>> start_library(std::string_view) { return reason(); }
Result<std::unique_ptr<LibraryAppContext>> join_library(std::string_view, void*) {
  return reason();
}

}  // namespace purlin::gpu
