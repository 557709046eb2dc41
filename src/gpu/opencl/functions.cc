// SPDX-License-Identifier: Apache-2.0
#include "gpu/opencl/functions.h"

#include "base/os/library.h"

namespace purlin::gpu {

Result<OpenClFunctions> load_opencl() {
  auto library = Library::open({"libOpenCL.so.1", "libOpenCL.so"});
  if (!library.is_ok())
    return error(Code::kUnavailable,
                 "no OpenCL loader on this machine; install one (Debian: ocl-icd-libopencl1) and a "
                 "driver (pocl-opencl-icd runs on the CPU): {}",
                 library.status().message());
  OpenClFunctions functions;
  std::string missing;
#define PURLIN_BIND(function) \
  if (!library->bind(functions.function, #function)) missing = #function;
  PURLIN_OPENCL_FUNCTIONS(PURLIN_BIND)
#undef PURLIN_BIND
  if (!missing.empty())
    return error(Code::kUnavailable, "{} lacks {}: it is older than OpenCL 1.2; update it",
                 library->name(), missing);
  return functions;
}

std::string opencl_error_name(cl_int code) {
  switch (code) {
#define PURLIN_NAME(name) \
  case name:              \
    return #name;
    PURLIN_NAME(CL_SUCCESS)
    PURLIN_NAME(CL_DEVICE_NOT_FOUND)
    PURLIN_NAME(CL_DEVICE_NOT_AVAILABLE)
    PURLIN_NAME(CL_COMPILER_NOT_AVAILABLE)
    PURLIN_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    PURLIN_NAME(CL_OUT_OF_RESOURCES)
    PURLIN_NAME(CL_OUT_OF_HOST_MEMORY)
    PURLIN_NAME(CL_PROFILING_INFO_NOT_AVAILABLE)
    PURLIN_NAME(CL_MEM_COPY_OVERLAP)
    PURLIN_NAME(CL_BUILD_PROGRAM_FAILURE)
    PURLIN_NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    PURLIN_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    PURLIN_NAME(CL_INVALID_VALUE)
    PURLIN_NAME(CL_INVALID_DEVICE)
    PURLIN_NAME(CL_INVALID_CONTEXT)
    PURLIN_NAME(CL_INVALID_COMMAND_QUEUE)
    PURLIN_NAME(CL_INVALID_MEM_OBJECT)
    PURLIN_NAME(CL_INVALID_BINARY)
    PURLIN_NAME(CL_INVALID_BUILD_OPTIONS)
    PURLIN_NAME(CL_INVALID_PROGRAM)
    PURLIN_NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    PURLIN_NAME(CL_INVALID_KERNEL_NAME)
    PURLIN_NAME(CL_INVALID_KERNEL)
    PURLIN_NAME(CL_INVALID_ARG_INDEX)
    PURLIN_NAME(CL_INVALID_ARG_VALUE)
    PURLIN_NAME(CL_INVALID_ARG_SIZE)
    PURLIN_NAME(CL_INVALID_KERNEL_ARGS)
    PURLIN_NAME(CL_INVALID_WORK_DIMENSION)
    PURLIN_NAME(CL_INVALID_WORK_GROUP_SIZE)
    PURLIN_NAME(CL_INVALID_WORK_ITEM_SIZE)
    PURLIN_NAME(CL_INVALID_GLOBAL_OFFSET)
    PURLIN_NAME(CL_INVALID_EVENT)
    PURLIN_NAME(CL_INVALID_OPERATION)
    PURLIN_NAME(CL_INVALID_BUFFER_SIZE)
    PURLIN_NAME(CL_INVALID_GLOBAL_WORK_SIZE)
#undef PURLIN_NAME
    case -1001:
      return "CL_PLATFORM_NOT_FOUND_KHR";
    default:
      return fmt::format("error {}", code);
  }
}

Code opencl_error_code(cl_int code) {
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
    case CL_DEVICE_NOT_FOUND:
    case CL_DEVICE_NOT_AVAILABLE:
    case CL_COMPILER_NOT_AVAILABLE:
      return Code::kUnavailable;
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_INVALID_BINARY:
    case CL_INVALID_BUILD_OPTIONS:
    case CL_INVALID_PROGRAM_EXECUTABLE:
    case CL_INVALID_KERNEL_NAME:
    case CL_INVALID_ARG_INDEX:
    case CL_INVALID_ARG_VALUE:
    case CL_INVALID_ARG_SIZE:
    case CL_INVALID_KERNEL_ARGS:
    case CL_INVALID_WORK_DIMENSION:
    case CL_INVALID_WORK_GROUP_SIZE:
    case CL_INVALID_WORK_ITEM_SIZE:
    case CL_INVALID_GLOBAL_WORK_SIZE:
    case CL_MISALIGNED_SUB_BUFFER_OFFSET:
      return Code::kInvalid;
    default:
      return Code::kFailed;
  }
}

Status opencl_failure(std::string_view what, cl_int code) {
  return error(opencl_error_code(code), "{}: {}", what, opencl_error_name(code));
}

}  // namespace purlin::gpu
