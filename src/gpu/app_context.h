// SPDX-License-Identifier: Apache-2.0
// AppContext: the seam to a device that the program has opened. Kernels are loaded into the
// program's own context and launched on the queues it hands over, with its own arguments.
//
// Implementations: CUDA, OpenCL, fake (gpu/fake/fake_app_context.h). The program's context must
// outlive this object. Thread-safety: everything is [MT]; kernels and queues are as safe as the
// driver makes them. Only load() may wait for the device. Failure: launches return the driver's own
// code (0 = success), which failure() describes. All else fails as in gpu/device.h.
#pragma once

#include "gpu/device.h"

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace purlin::gpu {

class AppKernel {
 public:
  virtual ~AppKernel() = default;
};

// A launch as the program asks for it.
struct AppLaunch {
  void* queue = nullptr;          // CUstream or cl_command_queue
  void* const* values = nullptr;  // for each argument, the address of its value or buffer handle
  std::size_t count = 0;
  // OpenCL only: what to wait for, and where to put the launch's event; a CUDA stream has an order.
  void* const* wait_list = nullptr;
  std::size_t wait_count = 0;
  void** event = nullptr;
};

struct AppWork {
  AppKernel* kernel = nullptr;
  const LaunchShape* shape = nullptr;
};

// Two launches that are being timed on the device.
class AppTiming {
 public:
  virtual ~AppTiming() = default;
  // Milliseconds of each launch once both are done, without waiting; nullopt until then. {0, 0} if
  // the driver does not report them.
  virtual std::optional<std::array<double, 2>> poll() = 0;
};

class AppContext {
 public:
  virtual ~AppContext() = default;
  const DeviceInfo& info() const { return info_; }
  virtual std::string_view language() const = 0;  // of KernelSpec::sources

  virtual Result<Binary> compile(const CompileRequest& request) = 0;
  // As Device::compiler_version().
  virtual std::string compiler_version(const CompileRequest&) { return ""; }
  // `sizes`: bytes of each argument's value, 0 for a buffer.
  virtual Result<std::unique_ptr<AppKernel>> load(const Binary& binary,
                                                  const std::vector<std::size_t>& sizes) = 0;
  // Once for each launch shape, ahead of its launches: limits are checked and raised.
  virtual Status admit(AppKernel& kernel, const LaunchShape& shape) = 0;

  // The hot path: no allocation, no wait.
  virtual int launch(const AppWork& work, const AppLaunch& launch) noexcept = 0;
  virtual Status failure(int code, const LaunchShape& shape) const = 0;
  // Whether what is enqueued now is recorded for later instead of run. Never true of OpenCL.
  virtual bool capturing(void* queue) const noexcept = 0;

  // Whether the buffers of two arguments may share memory; true if the driver does not report it.
  virtual bool may_overlap(const void* value_a, std::size_t bytes_a, const void* value_b,
                           std::size_t bytes_b) const = 0;
  // Launches `live` as the program asked for it. Three launches come before it, in the queue's
  // order and on the same arguments: first[0] as an untimed warm-up, then first[0] and first[1],
  // timed. `live` is launched even if those fail, and its code is returned. `timing` stays empty if
  // nothing could be timed.
  virtual int launch_shadowed(const std::array<AppWork, 2>& first, const AppWork& live,
                              const AppLaunch& launch, std::unique_ptr<AppTiming>& timing) = 0;

 protected:
  DeviceInfo info_;
};

// On the CUDA context that is current on the calling thread. It must also be current for load()
// and at launches. kUnavailable without a current context.
Result<std::unique_ptr<AppContext>> open_cuda_app_context();
// On a cl_context and one of its devices (nullptr: its first).
Result<std::unique_ptr<AppContext>> open_opencl_app_context(void* context, void* device);

}  // namespace purlin::gpu
