// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/driver.h"

#include "base/os/library.h"

namespace purlin::gpu {
namespace {

// What the user can do about it; "" if the driver's own text is enough.
std::string_view advice(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
      return "the kernel accesses memory outside its arguments; run it under compute-sanitizer. "
             "The device must be opened again";
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ASSERT:
      return "the kernel crashed on the device; run it under compute-sanitizer. The device must be "
             "opened again";
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return "the kernel ran longer than the display driver allows; use a smaller problem or a GPU "
             "without a display";
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return "the block needs more registers or shared memory than a multiprocessor has";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "use a smaller problem, or free the GPU (nvidia-smi lists who holds its memory)";
    case CUDA_ERROR_NO_DEVICE:
      return "no GPU is visible; check nvidia-smi and CUDA_VISIBLE_DEVICES, and --gpus for a "
             "container";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "libcuda and the kernel module differ in version; reboot or reload the module";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "the binary is of another architecture or a newer toolkit; compile it again, with an "
             "NVRTC no newer than the driver";
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
      return "another process holds the GPU in exclusive mode";
    case CUDA_ERROR_ECC_UNCORRECTABLE:
      return "the GPU's memory is faulty; reset or replace it";
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
      return "the device cannot schedule clusters of this size with these blocks";
    default:
      return "";
  }
}

}  // namespace

Result<CudaDriver> load_cuda_driver() {
  auto library = Library::open({"libcuda.so.1"});
  if (!library.is_ok())
    return error(Code::kUnavailable,
                 "no NVIDIA driver on this machine (libcuda.so.1); install one, or start the "
                 "container with --gpus all");
  CudaDriver driver;
  std::string missing;
#define PURLIN_BIND(function) \
  if (!library->bind(driver.function, #function)) missing = #function;
  PURLIN_CUDA_FUNCTIONS(PURLIN_BIND)
#undef PURLIN_BIND
  if (!library->bind(driver.cuEventElapsedTime, "cuEventElapsedTime"))
    missing = "cuEventElapsedTime";
  if (!missing.empty())
    return error(Code::kUnavailable,
                 "libcuda.so.1 lacks {}: update the NVIDIA driver to 520 or "
                 "newer",
                 missing);
  if (!library->bind(driver.cuDeviceGetUuid, "cuDeviceGetUuid_v2"))
    library->bind(driver.cuDeviceGetUuid, "cuDeviceGetUuid");
  library->bind(driver.cuLaunchKernelEx, "cuLaunchKernelEx");
  library->bind(driver.cuFuncGetParamInfo, "cuFuncGetParamInfo");
  library->bind(driver.cuFuncLoad, "cuFuncLoad");
  library->bind(driver.cuStreamWaitValue32, "cuStreamWaitValue32_v2");
  library->bind(driver.cuStreamBeginCapture_v2, "cuStreamBeginCapture_v2");
  library->bind(driver.cuStreamEndCapture, "cuStreamEndCapture");
  library->bind(driver.cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
  library->bind(driver.cuGraphUpload, "cuGraphUpload");
  library->bind(driver.cuGraphLaunch, "cuGraphLaunch");
  library->bind(driver.cuGraphExecDestroy, "cuGraphExecDestroy");
  library->bind(driver.cuGraphDestroy, "cuGraphDestroy");
  library->bind(driver.cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled");
  return driver;
}

Code cuda_error_code(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
      return Code::kInvalid;
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_DEVICE_NOT_LICENSED:
    case CUDA_ERROR_OPERATING_SYSTEM:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return Code::kUnavailable;
    default:
      return Code::kFailed;
  }
}

Status cuda_failure(const CudaDriver& driver, std::string_view what, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    name = "unknown CUDA error";
  if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) text = "";
  const std::string_view hint = advice(result);
  return error(cuda_error_code(result), "{}: {} {} ({}){}{}", what, name, static_cast<int>(result),
               text, hint.empty() ? "" : "; ", hint);
}

}  // namespace purlin::gpu
