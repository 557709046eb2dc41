// SPDX-License-Identifier: Apache-2.0
// CudaDevice: one GPU through the driver API, on its primary context and a separate stream.
//
// The driver's function table and the helpers are passed in, so that tests run the same code on a
// fake driver. Lifetimes, thread-safety and failure as for Device: buffers and kernels must not
// outlive the device, and compile() alone is [MT].
#pragma once

#include "gpu/cuda/cubin.h"
#include "gpu/cuda/driver.h"
#include "gpu/cuda/hardware_counters.h"
#include "gpu/cuda/nvcc.h"
#include "gpu/cuda/nvrtc.h"
#include "gpu/cuda/stream_timer.h"
#include "gpu/device.h"
#include "gpu/library_kernel.h"
#include "gpu/nvml.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace purlin::gpu {

// The helpers of a CudaDevice in addition to the driver; each may be absent.
struct CudaTools {
  std::unique_ptr<Nvrtc> nvrtc;
  Status nvrtc_problem;  // why nvrtc is nullptr
  std::shared_ptr<Nvml> nvml;
  // Of the process's hardware counters; called when they are first asked for. May be empty.
  std::function<Result<std::unique_ptr<HardwareCounters>>()> open_counters;
  std::shared_ptr<Nvcc> nvcc = std::make_shared<Nvcc>();  // looked for when it is first needed

  // By the compiler that the request asks for. [MT]
  Result<Binary> compile(const CompileRequest& request, const std::string& device_arch) const;
};

class CudaDevice : public Device {
 public:
  static Result<std::unique_ptr<CudaDevice>> open(const CudaDriver& driver, int index,
                                                  DeviceInfo info, CudaTools tools);
  ~CudaDevice() override;

  std::string_view language() const override { return "cuda"; }
  Result<Binary> compile(const CompileRequest& request) override;
  std::string compiler_version(const CompileRequest& request) override;
  std::optional<Resources> resources(const Binary& binary) const override {
    return cubin_resources(binary.image, binary.entry);
  }
  Result<std::unique_ptr<Kernel>> load(const Binary& binary) override;
  Result<std::string> library_version(std::string_view library) override;
  Result<LibrarySpace> library_space(const LibraryOperation& operation,
                                     const ProblemShape& problem) override;
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override;
  Status write(Buffer& buffer, std::size_t offset, const void* data, std::size_t bytes) override;
  Status read(const Buffer& buffer, std::size_t offset, void* data, std::size_t bytes) override;
  std::unique_ptr<HostMemory> host_memory(std::size_t bytes) override;
  Status copy(Buffer& to, std::size_t to_offset, const Buffer& from, std::size_t from_offset,
              std::size_t bytes) override;
  Status fill(Buffer& buffer, std::size_t offset, std::uint8_t byte, std::size_t bytes) override;
  Status run(const Launch& launch) override;
  Result<std::vector<Sample>> time(const Launch& launch, const TimingRequest& request) override;
  Result<Busy> keep_busy(const Launch& launch, const TimingRequest& request,
                         const GoOn& go_on) override;
  Result<std::map<std::string, double>> count(const Launch& launch, bool flush_l2) override;
  bool has_graphs() const override { return StreamTimer::has_graphs(driver_); }
  std::string_view how() const override { return timer_ ? timer_->how() : "event"; }
  double current_clock_mhz() override;
  Result<double> energy_mj() override;

 private:
  struct Parameters;
  CudaDevice(const CudaDriver& driver, DeviceInfo info, CudaTools tools);
  Status check(std::string_view what, CUresult result) const;
  Result<LibraryRuntime*> library(std::string_view name);
  Status make_current();
  Status bind(const Launch& launch, const std::vector<KernelArgument>& arguments,
              Parameters& parameters) const;
  Status prepare(const Launch& launch, Parameters& parameters);
  Status enqueue(const Launch& launch, Parameters& parameters);
  // `sets` holds the arguments for as long as the work is used.
  Result<StreamWork> work_of(const Launch& launch, const TimingRequest& request,
                             std::vector<Parameters>& sets);
  Status synchronize(std::string_view what);
  Status make_scratch();

  const CudaDriver driver_;
  CudaTools tools_;
  int index_ = 0;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;  // this and what is made in it: when first needed
  CUstream stream_ = nullptr;
  std::string pci_bus_id_;
  std::unique_ptr<Buffer> scratch_;
  std::unique_ptr<StreamTimer> timer_;
  std::unique_ptr<HardwareCounters> counters_;  // opened when counters are asked for
  std::unique_ptr<LibraryRuntime> library_;     // started when a spec asks for it
};

}  // namespace purlin::gpu
