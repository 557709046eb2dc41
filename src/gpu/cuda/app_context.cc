// SPDX-License-Identifier: Apache-2.0
// AppContext on the program's CUDA context.
//
// The driver reads a launch's parameters from the program's own array, so a launch is one call of
// cuLaunchKernel. Code is loaded when a kernel is, not lazily at its first launch, which may be
// recorded into a graph. Shadow launches are timed with events in the program's own stream.
#include "gpu/app_context.h"

#include "gpu/cuda/startup.h"

#include <mutex>

namespace purlin::gpu {
namespace {

constexpr int kDefaultDynamicSharedBytes = 48 << 10;  // what a launch gets without asking

// Makes the program's context current for the calls of a scope.
class InContext {
 public:
  InContext(const CudaDriver& driver, CUcontext context) : driver_(driver) {
    result_ = driver.cuCtxPushCurrent_v2(context);
  }
  ~InContext() {
    CUcontext popped = nullptr;
    if (result_ == CUDA_SUCCESS) driver_.cuCtxPopCurrent_v2(&popped);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  CUresult result() const { return result_; }

 private:
  const CudaDriver& driver_;
  CUresult result_;
};

class CudaAppKernel : public AppKernel {
 public:
  CudaAppKernel(const CudaDriver& driver, CUcontext context) : driver_(driver), context_(context) {}
  ~CudaAppKernel() override {
    const InContext in(driver_, context_);
    if (module != nullptr) driver_.cuModuleUnload(module);
  }
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  int max_threads = 0;
  std::mutex mutex;  // of what follows
  int dynamic_shared_allowed = kDefaultDynamicSharedBytes;

 private:
  const CudaDriver driver_;  // a copy: a kernel may outlive its AppContext
  const CUcontext context_;
};

class CudaTiming : public AppTiming {
 public:
  CudaTiming(const CudaDriver& driver, CUcontext context) : driver_(driver), context_(context) {}
  ~CudaTiming() override {
    const InContext in(driver_, context_);
    for (const CUevent event : events)
      if (event != nullptr) driver_.cuEventDestroy_v2(event);
  }

  bool create() {
    for (CUevent& event : events)
      if (driver_.cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) return false;
    return true;
  }

  std::optional<std::array<double, 2>> poll() override {
    const InContext in(driver_, context_);
    const CUresult state = driver_.cuEventQuery(events[2]);
    if (state == CUDA_ERROR_NOT_READY) return std::nullopt;
    std::array<double, 2> ms{};
    for (std::size_t i = 0; state == CUDA_SUCCESS && i < 2; ++i) {
      float value = 0;
      if (driver_.cuEventElapsedTime(&value, events[i], events[i + 1]) != CUDA_SUCCESS)
        return std::array<double, 2>{0, 0};
      ms[i] = static_cast<double>(value);
    }
    return ms;
  }

  std::array<CUevent, 3> events{};

 private:
  const CudaDriver driver_;
  const CUcontext context_;
};

class CudaAppContext : public AppContext {
 public:
  CudaAppContext(CudaStartup startup, CUcontext context, DeviceInfo info)
      : driver_(startup.driver), tools_(std::move(startup.tools)), context_(context) {
    info_ = std::move(info);
  }

  std::string_view language() const override { return "cuda"; }
  Result<Binary> compile(const CompileRequest& request) override {
    return tools_.compile(request, info_.arch);
  }
  std::string compiler_version(const CompileRequest& request) override {
    return request.compiler == "nvcc" ? tools_.nvcc->version().value_or("") : "";
  }

  Result<std::unique_ptr<AppKernel>> load(const Binary& binary,
                                          const std::vector<std::size_t>& sizes) override {
    const InContext in(driver_, context_);
    PURLIN_TRY(check("entering the program's context", in.result()));
    auto kernel = std::make_unique<CudaAppKernel>(driver_, context_);
    char log[4096] = {};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
    if (const CUresult result =
            driver_.cuModuleLoadDataEx(&kernel->module, binary.image.c_str(), 2, options, values);
        result != CUDA_SUCCESS) {
      kernel->module = nullptr;
      const Status status = check("loading the binary of '" + binary.entry + "'", result);
      return log[0] == '\0' ? status : Status(status.code(), status.message() + "\n" + log);
    }
    PURLIN_TRY(check(
        "looking up '" + binary.entry + "'",
        driver_.cuModuleGetFunction(&kernel->function, kernel->module, binary.entry.c_str())));
    if (driver_.cuFuncLoad != nullptr)
      PURLIN_TRY(check("loading '" + binary.entry + "'", driver_.cuFuncLoad(kernel->function)));
    // On drivers without cuFuncLoad this loads the code as well.
    driver_.cuFuncGetAttribute(&kernel->max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                               kernel->function);
    PURLIN_TRY(check_parameters(kernel->function, binary.entry, sizes));
    return std::unique_ptr<AppKernel>(std::move(kernel));
  }

  Status admit(AppKernel& kernel, const LaunchShape& shape) override {
    auto& own = static_cast<CudaAppKernel&>(kernel);
    if (own.max_threads > 0 &&
        shape.threads_per_block() > static_cast<std::uint64_t>(own.max_threads))
      return error(Code::kInvalid, "blocks of {} threads are over the kernel's limit of {} on {}",
                   shape.threads_per_block(), own.max_threads, info_.name);
    const std::lock_guard<std::mutex> lock(own.mutex);
    const int dynamic = static_cast<int>(shape.dynamic_shared_bytes);
    if (dynamic <= own.dynamic_shared_allowed) return Status::ok();
    const InContext in(driver_, context_);
    PURLIN_TRY(check(fmt::format("allowing {} bytes of dynamic shared memory", dynamic),
                     driver_.cuFuncSetAttribute(
                         own.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic)));
    own.dynamic_shared_allowed = dynamic;
    return Status::ok();
  }

  int launch(const AppWork& work, const AppLaunch& launch) noexcept override {
    const LaunchShape& shape = *work.shape;
    return driver_.cuLaunchKernel(
        static_cast<CudaAppKernel*>(work.kernel)->function, shape.grid[0], shape.grid[1],
        shape.grid[2], shape.block[0], shape.block[1], shape.block[2], shape.dynamic_shared_bytes,
        static_cast<CUstream>(launch.queue), const_cast<void**>(launch.values), nullptr);
  }

  Status failure(int code, const LaunchShape& shape) const override {
    return cuda_failure(driver_, fmt::format("launching {} on {}", to_text(shape), info_.id),
                        static_cast<CUresult>(code));
  }

  bool capturing(void* queue) const noexcept override {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    // The legacy default stream refuses this query while another stream is captured.
    return driver_.cuStreamIsCapturing(static_cast<CUstream>(queue), &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
  }

  bool may_overlap(const void* value_a, std::size_t bytes_a, const void* value_b,
                   std::size_t bytes_b) const override {
    if (value_a == nullptr || value_b == nullptr) return true;
    const CUdeviceptr a = *static_cast<const CUdeviceptr*>(value_a),
                      b = *static_cast<const CUdeviceptr*>(value_b);
    return a < b + bytes_b && b < a + bytes_a;
  }

  int launch_shadowed(const std::array<AppWork, 2>& first, const AppWork& live,
                      const AppLaunch& launch, std::unique_ptr<AppTiming>& timing) override {
    auto made = std::make_unique<CudaTiming>(driver_, context_);
    const auto stream = static_cast<CUstream>(launch.queue);
    bool timed = false;
    {
      const InContext in(driver_, context_);
      timed = in.result() == CUDA_SUCCESS && made->create() &&
              this->launch(first[0], launch) == CUDA_SUCCESS &&
              driver_.cuEventRecord(made->events[0], stream) == CUDA_SUCCESS &&
              this->launch(first[0], launch) == CUDA_SUCCESS &&
              driver_.cuEventRecord(made->events[1], stream) == CUDA_SUCCESS &&
              this->launch(first[1], launch) == CUDA_SUCCESS &&
              driver_.cuEventRecord(made->events[2], stream) == CUDA_SUCCESS;
    }
    if (timed) timing = std::move(made);
    return this->launch(live, launch);
  }

 private:
  Status check(std::string_view what, CUresult result) const {
    return result == CUDA_SUCCESS
               ? Status::ok()
               : cuda_failure(driver_, fmt::format("{} on {}", what, info_.id), result);
  }

  // A parameter of another size than the program's would be read past its end at each launch.
  Status check_parameters(CUfunction function, const std::string& entry,
                          const std::vector<std::size_t>& sizes) const {
    if (driver_.cuFuncGetParamInfo == nullptr) return Status::ok();
    std::size_t offset = 0, size = 0, count = 0;
    for (; count < 4096 &&
           driver_.cuFuncGetParamInfo(function, count, &offset, &size) == CUDA_SUCCESS;
         ++count) {
      if (count >= sizes.size()) continue;
      const std::size_t given = sizes[count] == 0 ? sizeof(CUdeviceptr) : sizes[count];
      if (given != size)
        return error(Code::kInvalid, "argument {} of '{}' has {} bytes, {} in its spec", count,
                     entry, size, given);
    }
    if (count == sizes.size()) return Status::ok();
    return error(Code::kInvalid, "the kernel '{}' takes {} arguments, its spec has {}", entry,
                 count, sizes.size());
  }

  const CudaDriver driver_;
  const CudaTools tools_;
  const CUcontext context_;
};

}  // namespace

std::unique_ptr<AppContext> make_cuda_app_context(CudaStartup startup, CUcontext context,
                                                  DeviceInfo info) {
  return std::make_unique<CudaAppContext>(std::move(startup), context, std::move(info));
}

Result<std::unique_ptr<AppContext>> open_cuda_app_context() {
  PURLIN_ASSIGN(CudaStartup startup, start_cuda());
  CUcontext context = nullptr;
  CUdevice device = 0;
  CUresult result = startup.driver.cuCtxGetCurrent(&context);
  if (result == CUDA_SUCCESS && context == nullptr)
    return error(Code::kUnavailable,
                 "this thread has no CUDA context; make one current first (with the CUDA runtime, "
                 "cudaFree(0) does)");
  if (result == CUDA_SUCCESS) result = startup.driver.cuCtxGetDevice(&device);
  if (result != CUDA_SUCCESS)
    return cuda_failure(startup.driver, "asking for the thread's CUDA context", result);
  PURLIN_ASSIGN(DeviceInfo info, describe_cuda_device(startup, device));
  return make_cuda_app_context(std::move(startup), context, std::move(info));
}

}  // namespace purlin::gpu
