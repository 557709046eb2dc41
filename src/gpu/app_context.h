// SPDX-License-Identifier: Apache-2.0
// GuestDevice: the seam to a device that the program has opened. Kernels are loaded into the
// program's own context and launched on the queues it hands over, with its own arguments.
//
// Implementations: CUDA, OpenCL, fake (gpu/fake/fake_guest.h). The context must outlive the guest.
// Thread-safety: everything is [MT]; the kernels and queues are as safe as the driver has them.
// Nothing waits for the device, except that load() may. Failure: launches return the driver's own
// code, 0 being success, which failure() puts into words; the rest as for gpu/device.h.
#pragma once

#include "gpu/device.h"

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace purlin::gpu {

class GuestKernel {
 public:
  virtual ~GuestKernel() = default;
};

// A launch as the program asks for it.
struct GuestLaunch {
  void* queue = nullptr;          // CUstream or cl_command_queue
  void* const* values = nullptr;  // for each argument, the address of its value or buffer handle
  std::size_t count = 0;
  // OpenCL only: what to wait for, and where to put the launch's event; a CUDA stream has an order.
  void* const* wait_list = nullptr;
  std::size_t wait_count = 0;
  void** event = nullptr;
};

struct GuestWork {
  GuestKernel* kernel = nullptr;
  const LaunchShape* shape = nullptr;
};

// Two launches that are being timed on the device.
class GuestTiming {
 public:
  virtual ~GuestTiming() = default;
  // Milliseconds of each once both are done, without waiting; nullopt until then. {0, 0} where the
  // driver would not say.
  virtual std::optional<std::array<double, 2>> poll() = 0;
};

class GuestDevice {
 public:
  virtual ~GuestDevice() = default;
  const DeviceInfo& info() const { return info_; }
  virtual std::string_view language() const = 0;  // of KernelSpec::sources

  virtual Result<Binary> compile(const CompileRequest& request) = 0;
  // As Device::compiler_version().
  virtual std::string compiler_version(const CompileRequest&) { return ""; }
  // `sizes`: bytes of each argument's value, 0 for a buffer.
  virtual Result<std::unique_ptr<GuestKernel>> load(const Binary& binary,
                                                    const std::vector<std::size_t>& sizes) = 0;
  // Once for each launch shape, ahead of its launches: limits are checked and raised.
  virtual Status admit(GuestKernel& kernel, const LaunchShape& shape) = 0;

  // The hot path: no allocation, no wait.
  virtual int launch(const GuestWork& work, const GuestLaunch& launch) noexcept = 0;
  virtual Status failure(int code, const LaunchShape& shape) const = 0;
  // Whether what is enqueued now is recorded for later instead of run. Never true of OpenCL.
  virtual bool capturing(void* queue) const noexcept = 0;

  // Whether the buffers of two arguments may share memory; true where it cannot be told.
  virtual bool may_overlap(const void* value_a, std::size_t bytes_a, const void* value_b,
                           std::size_t bytes_b) const = 0;
  // Launches `live` as the program asked for it, and before it, in the queue's order and on the
  // same arguments, first[0] untimed as a warm-up, then first[0] and first[1], timed. Whatever
  // becomes of those, `live` is launched, and its code is returned. `timing` stays empty where
  // nothing could be timed.
  virtual int launch_shadowed(const std::array<GuestWork, 2>& first, const GuestWork& live,
                              const GuestLaunch& launch, std::unique_ptr<GuestTiming>& timing) = 0;

 protected:
  DeviceInfo info_;
};

// On the CUDA context that is current on the calling thread, which must be current for load() and
// at launches, too. kUnavailable where there is none.
Result<std::unique_ptr<GuestDevice>> open_cuda_guest();
// On a cl_context and one of its devices (nullptr: its first).
Result<std::unique_ptr<GuestDevice>> open_opencl_guest(void* context, void* device);

}  // namespace purlin::gpu
