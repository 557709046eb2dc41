// SPDX-License-Identifier: Apache-2.0
// AppContext on the program's OpenCL context.
//
// Arguments belong to the cl_kernel object, not to the launch. Two threads must not set them on one
// object at a time, so each loaded kernel is several objects of one program, and a thread takes a
// free one. Shadow launches go to a separate profiling queue, because the program's queue rarely
// has profiling. Events order the two queues.
#include "gpu/app_context.h"

#include "gpu/opencl/facts.h"
#include "gpu/opencl/functions.h"
#include "gpu/opencl/program.h"

#include <atomic>
#include <mutex>

namespace purlin::gpu {
namespace {

constexpr std::size_t kObjects = 4;  // threads that launch one kernel without waiting in turn
constexpr cl_uint kMaxWaits = 1024;

std::size_t thread_number() noexcept {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

class OpenClAppKernel : public AppKernel {
 public:
  OpenClAppKernel(std::unique_ptr<OpenClKernel> first, std::vector<std::size_t> sizes)
      : loaded_(std::move(first)), sizes_(std::move(sizes)) {
    objects_[0].kernel = loaded_->handle();
  }

  Status clone(const OpenClFunctions& cl, const std::string& entry) {
    for (std::size_t i = 1; i < kObjects; ++i) {
      cl_int code = CL_SUCCESS;
      owned_[i] = {cl.clCreateKernel(loaded_->program(), entry.c_str(), &code), cl.clReleaseKernel};
      if (code != CL_SUCCESS) return opencl_failure("clCreateKernel of '" + entry + "'", code);
      objects_[i].kernel = owned_[i].get();
    }
    return Status::ok();
  }

  int max_threads() const { return loaded_->max_threads_per_block; }

  cl_int enqueue(const OpenClFunctions& cl, cl_command_queue queue, const LaunchShape& shape,
                 void* const* values, cl_uint wait_count, const cl_event* wait_list,
                 cl_event* event) noexcept {
    std::size_t global[3], local[3];
    for (std::size_t i = 0; i < 3; ++i) {
      local[i] = shape.block[i];
      global[i] = std::size_t{shape.grid[i]} * shape.block[i];
    }
    Object& object = take();
    const std::lock_guard<std::mutex> lock(object.mutex, std::adopt_lock);
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const std::size_t bytes = sizes_[i] == 0 ? sizeof(cl_mem) : sizes_[i];
      if (const cl_int code =
              cl.clSetKernelArg(object.kernel, static_cast<cl_uint>(i), bytes, values[i]);
          code != CL_SUCCESS)
        return code;
    }
    return cl.clEnqueueNDRangeKernel(queue, object.kernel, 3, nullptr, global, local, wait_count,
                                     wait_list, event);
  }

 private:
  struct Object {
    std::mutex mutex;
    cl_kernel kernel = nullptr;
  };

  // Locked.
  Object& take() noexcept {
    const std::size_t first = thread_number();
    for (std::size_t i = 0; i < kObjects; ++i)
      if (Object& object = objects_[(first + i) % kObjects]; object.mutex.try_lock()) return object;
    Object& object = objects_[first % kObjects];
    object.mutex.lock();
    return object;
  }

  std::unique_ptr<OpenClKernel> loaded_;
  std::array<ClOwned<cl_kernel>, kObjects> owned_;
  std::array<Object, kObjects> objects_;
  const std::vector<std::size_t> sizes_;
};

class OpenClTiming : public AppTiming {
 public:
  OpenClTiming(const OpenClFunctions& cl, std::array<ClOwned<cl_event>, 2> events)
      : cl_(cl), events_(std::move(events)) {}

  std::optional<std::array<double, 2>> poll() override {
    // The queue is in order, so the second is done last.
    cl_int state = CL_QUEUED;
    if (cl_.clGetEventInfo(events_[1].get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                           &state, nullptr) != CL_SUCCESS ||
        state < 0)
      return std::array<double, 2>{0, 0};
    if (state != CL_COMPLETE) return std::nullopt;
    std::array<double, 2> ms{};
    for (std::size_t i = 0; i < 2; ++i) {
      cl_ulong start = 0, end = 0;
      if (cl_.clGetEventProfilingInfo(events_[i].get(), CL_PROFILING_COMMAND_START, sizeof start,
                                      &start, nullptr) != CL_SUCCESS ||
          cl_.clGetEventProfilingInfo(events_[i].get(), CL_PROFILING_COMMAND_END, sizeof end, &end,
                                      nullptr) != CL_SUCCESS ||
          end <= start)
        return std::array<double, 2>{0, 0};
      ms[i] = static_cast<double>(end - start) * 1e-6;
    }
    return ms;
  }

 private:
  const OpenClFunctions cl_;  // a timing may outlive its device
  std::array<ClOwned<cl_event>, 2> events_;
};

class OpenClAppContext : public AppContext {
 public:
  OpenClAppContext(OpenClFunctions cl, cl_context context, cl_device_id device, DeviceInfo info)
      : cl_(cl), context_(context), device_(device) {
    info_ = std::move(info);
  }

  std::string_view language() const override { return "opencl"; }
  Result<Binary> compile(const CompileRequest& request) override {
    return compile_opencl(cl_, context_, device_, request);
  }

  Result<std::unique_ptr<AppKernel>> load(const Binary& binary,
                                          const std::vector<std::size_t>& sizes) override {
    PURLIN_ASSIGN(auto loaded, load_opencl_kernel(cl_, context_, device_, binary));
    if (loaded->arguments() != sizes.size())
      return error(Code::kInvalid, "the kernel '{}' takes {} arguments, its spec has {}",
                   binary.entry, loaded->arguments(), sizes.size());
    auto kernel = std::make_unique<OpenClAppKernel>(std::move(loaded), sizes);
    PURLIN_TRY(kernel->clone(cl_, binary.entry));
    return std::unique_ptr<AppKernel>(std::move(kernel));
  }

  Status admit(AppKernel& kernel, const LaunchShape& shape) override {
    const int most = static_cast<OpenClAppKernel&>(kernel).max_threads();
    if (most > 0 && shape.threads_per_block() > static_cast<std::uint64_t>(most))
      return error(Code::kInvalid, "work-groups of {} are over the kernel's limit of {} on {}",
                   shape.threads_per_block(), most, info_.name);
    return Status::ok();
  }

  int launch(const AppWork& work, const AppLaunch& launch) noexcept override {
    cl_event handle = nullptr;
    const cl_int code = static_cast<OpenClAppKernel*>(work.kernel)
                            ->enqueue(cl_, static_cast<cl_command_queue>(launch.queue), *work.shape,
                                      launch.values, static_cast<cl_uint>(launch.wait_count),
                                      waits(launch), launch.event != nullptr ? &handle : nullptr);
    if (launch.event != nullptr) *launch.event = handle;
    return code;
  }

  Status failure(int code, const LaunchShape& shape) const override {
    return opencl_failure(fmt::format("launching {} on {}", to_text(shape), info_.name), code);
  }
  bool capturing(void*) const noexcept override { return false; }

  bool may_overlap(const void* value_a, std::size_t, const void* value_b,
                   std::size_t) const override {
    const cl_mem a = memory_of(value_a), b = memory_of(value_b);
    return a != nullptr && a == b;
  }

  int launch_shadowed(const std::array<AppWork, 2>& first, const AppWork& live,
                      const AppLaunch& launch, std::unique_ptr<AppTiming>& timing) override {
    ClOwned<cl_event> before, after;
    std::array<ClOwned<cl_event>, 2> events;
    const auto queue = static_cast<cl_command_queue>(launch.queue);
    if (own_queue() == nullptr || launch.wait_count >= kMaxWaits ||
        !enqueue_shadows(first, queue, launch, before, events))
      return this->launch(live, launch);
    // In addition to its own wait list, the live launch waits for the shadows: they write the same
    // outputs.
    std::vector<cl_event> waits = events_of(launch);
    waits.push_back(events[1].get());
    AppLaunch ordered = launch;
    ordered.wait_list = reinterpret_cast<void* const*>(waits.data());
    ordered.wait_count = waits.size();
    timing = std::make_unique<OpenClTiming>(cl_, std::move(events));
    return this->launch(live, ordered);
  }

 private:
  static const cl_event* waits(const AppLaunch& launch) {
    return launch.wait_count == 0 ? nullptr : reinterpret_cast<const cl_event*>(launch.wait_list);
  }

  static std::vector<cl_event> events_of(const AppLaunch& launch) {
    if (launch.wait_count == 0) return {};
    return {waits(launch), waits(launch) + launch.wait_count};
  }

  // The owner of the memory: for a sub-buffer, its parent buffer.
  cl_mem memory_of(const void* value) const {
    cl_mem memory = value == nullptr ? nullptr : *static_cast<const cl_mem*>(value);
    cl_mem parent = nullptr;
    if (memory != nullptr && cl_.clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT,
                                                    sizeof parent, &parent, nullptr) == CL_SUCCESS)
      return parent != nullptr ? parent : memory;
    return memory;
  }

  cl_command_queue own_queue() {
    std::call_once(queue_made_, [&] {
      cl_int code = CL_SUCCESS;
      cl_command_queue queue =
          cl_.clCreateCommandQueue(context_, device_, CL_QUEUE_PROFILING_ENABLE, &code);
      if (code == CL_SUCCESS) queue_ = {queue, cl_.clReleaseCommandQueue};
    });
    return queue_.get();
  }

  // False if the driver refused a command; none of the commands is running then.
  bool enqueue_shadows(const std::array<AppWork, 2>& first, cl_command_queue program,
                       const AppLaunch& launch, ClOwned<cl_event>& before,
                       std::array<ClOwned<cl_event>, 2>& events) {
    const cl_command_queue own = own_queue();
    cl_event marker = nullptr;
    if (cl_.clEnqueueMarkerWithWaitList(program, 0, nullptr, &marker) != CL_SUCCESS) return false;
    before = {marker, cl_.clReleaseEvent};
    std::vector<cl_event> waits = events_of(launch);
    waits.push_back(marker);
    // A queue that another waits for must have been flushed.
    if (cl_.clFlush(program) != CL_SUCCESS) return false;
    const std::lock_guard<std::mutex> lock(queue_mutex_);
    const auto enqueue = [&](const AppWork& work, cl_uint count, const cl_event* list,
                             cl_event* event) {
      return static_cast<OpenClAppKernel*>(work.kernel)
          ->enqueue(cl_, own, *work.shape, launch.values, count, list, event);
    };
    bool ok =
        enqueue(first[0], static_cast<cl_uint>(waits.size()), waits.data(), nullptr) == CL_SUCCESS;
    for (std::size_t i = 0; ok && i < 2; ++i) {
      cl_event event = nullptr;
      ok = enqueue(first[i], 0, nullptr, &event) == CL_SUCCESS;
      if (ok) events[i] = {event, cl_.clReleaseEvent};
    }
    cl_.clFlush(own);
    // A part of it runs, so wait: it must not overlap with the program's launch.
    if (!ok) cl_.clFinish(own);
    return ok;
  }

  const OpenClFunctions cl_;
  const cl_context context_;
  const cl_device_id device_;
  std::once_flag queue_made_;
  std::mutex queue_mutex_;  // the three of one shadow follow each other
  ClOwned<cl_command_queue> queue_;
};

}  // namespace

Result<std::unique_ptr<AppContext>> open_opencl_app_context(void* context, void* device) {
  if (context == nullptr)
    return error(Code::kInvalid, "dispatch on OpenCL needs the program's cl_context");
  PURLIN_ASSIGN(const OpenClFunctions cl, load_opencl());
  const auto handle = static_cast<cl_context>(context);
  cl_device_id devices[64] = {};
  std::size_t bytes = 0;
  const cl_int code =
      cl.clGetContextInfo(handle, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes);
  if (code != CL_SUCCESS || bytes < sizeof devices[0])
    return opencl_failure("asking the context for its devices", code);
  const std::size_t count = bytes / sizeof devices[0];
  const cl_device_id wanted = device == nullptr ? devices[0] : static_cast<cl_device_id>(device);
  if (std::find(devices, devices + count, wanted) == devices + count)
    return error(Code::kInvalid, "the device is not one of the context's {}", count);
  PURLIN_ASSIGN(const auto ids, list_opencl_devices(cl));
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i].device == wanted)
      return std::unique_ptr<AppContext>(std::make_unique<OpenClAppContext>(
          cl, handle, wanted, describe_opencl_device(cl, ids[i], static_cast<int>(i))));
  return error(Code::kUnavailable, "the OpenCL loader does not list the context's device");
}

}  // namespace purlin::gpu
