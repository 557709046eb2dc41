// SPDX-License-Identifier: Apache-2.0
// The OpenCL backend: a context and one in-order profiling queue per device.
#include "gpu/device.h"

#include "gpu/launching.h"
#include "gpu/opencl/facts.h"
#include "gpu/opencl/functions.h"
#include "gpu/opencl/memory.h"
#include "gpu/opencl/program.h"

#include <algorithm>

namespace purlin::gpu {
namespace {

OpenClBuffer& own(Buffer& buffer) { return static_cast<OpenClBuffer&>(buffer); }
const OpenClBuffer& own(const Buffer& buffer) { return static_cast<const OpenClBuffer&>(buffer); }

class OpenClDevice : public Device {
 public:
  OpenClDevice(OpenClFunctions cl, OpenClDeviceId id, DeviceInfo info)
      : cl_(cl), device_(id.device) {
    info_ = std::move(info);
    const auto bits = opencl_device_fact<cl_uint>(cl_, device_, CL_DEVICE_MEM_BASE_ADDR_ALIGN);
    // At least the alignment of vector types of 16 x 8 bytes; some drivers report less.
    alignment_ = std::max<std::size_t>(bits / 8, 128);
    largest_ = opencl_device_fact<cl_ulong>(cl_, device_, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  }

  Status initialise() {
    cl_int code = CL_SUCCESS;
    context_ = {cl_.clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code),
                cl_.clReleaseContext};
    if (code != CL_SUCCESS) return opencl_failure("clCreateContext on " + info_.name, code);
    queue_ = {cl_.clCreateCommandQueue(context_.get(), device_, CL_QUEUE_PROFILING_ENABLE, &code),
              cl_.clReleaseCommandQueue};
    if (code != CL_SUCCESS) return opencl_failure("clCreateCommandQueue on " + info_.name, code);
    return Status::ok();
  }

  std::string_view language() const override { return "opencl"; }
  std::size_t buffer_alignment() const override { return alignment_; }

  Result<Binary> compile(const CompileRequest& request) override {
    return compile_opencl(cl_, context_.get(), device_, request);
  }

  Result<std::unique_ptr<Kernel>> load(const Binary& binary) override {
    PURLIN_ASSIGN(auto kernel, load_opencl_kernel(cl_, context_.get(), device_, binary));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes) override {
    if (bytes == 0) return error(Code::kInvalid, "a buffer of 0 bytes");
    if (largest_ > 0 && bytes > largest_)
      return error(Code::kUnavailable,
                   "a buffer of {} bytes is over the limit of {} on {}; use a smaller problem",
                   bytes, largest_, info_.name);
    cl_int code = CL_SUCCESS;
    cl_mem memory = cl_.clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, bytes, nullptr, &code);
    if (code != CL_SUCCESS)
      return opencl_failure(fmt::format("allocating {} bytes on {}", bytes, info_.name), code);
    return std::unique_ptr<Buffer>(std::make_unique<OpenClBuffer>(cl_, memory, bytes));
  }

  Status write(Buffer& buffer, std::size_t offset, const void* data, std::size_t bytes) override {
    PURLIN_TRY(check_range(buffer, offset, bytes));
    if (bytes == 0) return Status::ok();
    return check("clEnqueueWriteBuffer",
                 cl_.clEnqueueWriteBuffer(queue_.get(), own(buffer).memory(), CL_TRUE, offset,
                                          bytes, data, 0, nullptr, nullptr));
  }

  Status read(const Buffer& buffer, std::size_t offset, void* data, std::size_t bytes) override {
    PURLIN_TRY(check_range(buffer, offset, bytes));
    if (bytes == 0) return Status::ok();
    return check("clEnqueueReadBuffer",
                 cl_.clEnqueueReadBuffer(queue_.get(), own(buffer).memory(), CL_TRUE, offset, bytes,
                                         data, 0, nullptr, nullptr));
  }

  Status copy(Buffer& to, std::size_t to_offset, const Buffer& from, std::size_t from_offset,
              std::size_t bytes) override {
    PURLIN_TRY(check_range(to, to_offset, bytes));
    PURLIN_TRY(check_range(from, from_offset, bytes));
    if (bytes == 0) return Status::ok();
    PURLIN_TRY(check("clEnqueueCopyBuffer",
                     cl_.clEnqueueCopyBuffer(queue_.get(), own(from).memory(), own(to).memory(),
                                             from_offset, to_offset, bytes, 0, nullptr, nullptr)));
    return finish("copying");
  }

  Status fill(Buffer& buffer, std::size_t offset, std::uint8_t byte, std::size_t bytes) override {
    PURLIN_TRY(check_range(buffer, offset, bytes));
    if (bytes == 0) return Status::ok();
    PURLIN_TRY(enqueue_fill(own(buffer).memory(), offset, byte, bytes));
    return finish("filling");
  }

  Status run(const Launch& launch) override {
    PURLIN_TRY(prepare(launch));
    PURLIN_TRY(enqueue(launch, nullptr));
    return finish("the launch");
  }

  // A batch lies in one queue, in order; a host slower than the device leaves gaps in it.
  std::string_view how() const override { return batched_ ? "batch" : "event"; }
  Result<std::vector<Sample>> time(const Launch& launch, const TimingRequest& request) override {
    PURLIN_TRY(prepare(launch));
    if (request.flush_l2) PURLIN_TRY(make_scratch());
    batched_ = request.launches_per_sample > 1;
    return sample_in_chunks(request, system_clock(), [&](int count, std::vector<Sample>& samples) {
      return time_chunk(launch, request, count, samples);
    });
  }

 private:
  struct Pair {
    ClOwned<cl_event> first, last;
  };

  Status check(std::string_view what, cl_int code) const {
    return code == CL_SUCCESS ? Status::ok() : opencl_failure(what, code);
  }

  // A failure that appears only after the queue is drained comes from the kernel (an illegal
  // access) or from a lost device. In both cases the context is no longer usable.
  Status finish(std::string_view what) {
    const cl_int code = cl_.clFinish(queue_.get());
    if (code == CL_SUCCESS) return Status::ok();
    return error(Code::kFailed, "{} failed on {}: {}; the device must be opened again", what,
                 info_.name, opencl_error_name(code));
  }

  static Status check_range(const Buffer& buffer, std::size_t offset, std::size_t bytes) {
    if (offset <= buffer.bytes() && bytes <= buffer.bytes() - offset) return Status::ok();
    return error(Code::kInvalid, "{} bytes at {} are outside a buffer of {}", bytes, offset,
                 buffer.bytes());
  }

  Status enqueue_fill(cl_mem memory, std::size_t offset, std::uint8_t byte, std::size_t bytes) {
    return check("clEnqueueFillBuffer",
                 cl_.clEnqueueFillBuffer(queue_.get(), memory, &byte, sizeof byte, offset, bytes, 0,
                                         nullptr, nullptr));
  }

  // Checks the launch and binds its arguments, once for all samples.
  Status prepare(const Launch& launch) {
    PURLIN_TRY(check_launch(info_, launch, alignment_));
    if (launch.shape.cluster != Dim3{1, 1, 1})
      return error(Code::kInvalid, "OpenCL has no clusters; leave the cluster at 1");
    return bind(launch, launch.arguments);
  }

  Status bind(const Launch& launch, const std::vector<KernelArgument>& arguments) {
    const auto& kernel = static_cast<const OpenClKernel&>(*launch.kernel);
    if (arguments.size() != kernel.arguments())
      return error(Code::kInvalid, "the kernel takes {} arguments, the launch gives {}",
                   kernel.arguments(), arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const KernelArgument& argument = arguments[i];
      cl_int code = CL_SUCCESS;
      if (argument.buffer != nullptr) {
        PURLIN_ASSIGN(const cl_mem window,
                      own(*argument.buffer).window(argument.offset, argument.bytes));
        code = cl_.clSetKernelArg(kernel.handle(), static_cast<cl_uint>(i), sizeof window, &window);
      } else {
        code = cl_.clSetKernelArg(kernel.handle(), static_cast<cl_uint>(i), argument.scalar.size(),
                                  argument.scalar.data());
      }
      if (code != CL_SUCCESS) return opencl_failure(fmt::format("kernel argument {}", i), code);
    }
    return Status::ok();
  }

  // Dynamic shared memory has no counterpart here: OpenCL kernels declare theirs, sized by macros.
  Status enqueue(const Launch& launch, ClOwned<cl_event>* event) {
    std::size_t global[3], local[3];
    for (std::size_t i = 0; i < 3; ++i) {
      local[i] = launch.shape.block[i];
      global[i] = std::size_t{launch.shape.grid[i]} * launch.shape.block[i];
    }
    cl_event handle = nullptr;
    const cl_int code = cl_.clEnqueueNDRangeKernel(
        queue_.get(), static_cast<const OpenClKernel*>(launch.kernel)->handle(), 3, nullptr, global,
        local, 0, nullptr, event != nullptr ? &handle : nullptr);
    if (handle != nullptr) *event = {handle, cl_.clReleaseEvent};
    if (code == CL_SUCCESS) return Status::ok();
    // Refused before it ran: too many resources for this shape, not a broken device.
    const Code kind = code == CL_OUT_OF_RESOURCES ? Code::kInvalid : opencl_error_code(code);
    return error(kind, "{} refuses to launch {}: {}", info_.name, to_text(launch.shape),
                 opencl_error_name(code));
  }

  Status time_chunk(const Launch& launch, const TimingRequest& request, int count,
                    std::vector<Sample>& samples) {
    std::vector<Pair> pairs(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (request.flush_l2)
        PURLIN_TRY(enqueue_fill(own(*scratch_).memory(), 0, static_cast<std::uint8_t>(i),
                                scratch_->bytes()));
      const int launches = request.launches_per_sample;
      for (int n = 0; n < launches; ++n) {
        ClOwned<cl_event>* event = n + 1 == launches ? &pairs[i].last
                                   : n == 0          ? &pairs[i].first
                                                     : nullptr;
        // Arguments are taken over when a launch is queued.
        if (const std::size_t further = launch.further_arguments.size(); further > 0) {
          const std::size_t set = nth_++ % (further + 1);
          PURLIN_TRY(bind(launch, set == 0 ? launch.arguments : launch.further_arguments[set - 1]));
        }
        PURLIN_TRY(enqueue(launch, event));
      }
    }
    PURLIN_TRY(finish("timing"));
    for (const Pair& pair : pairs) {
      const cl_event first = pair.first.get() != nullptr ? pair.first.get() : pair.last.get();
      PURLIN_ASSIGN(const cl_ulong start, event_ns(first, CL_PROFILING_COMMAND_START));
      PURLIN_ASSIGN(const cl_ulong end, event_ns(pair.last.get(), CL_PROFILING_COMMAND_END));
      // Some clocks tick so coarsely that a short kernel has start == end.
      const double ns = end > start ? static_cast<double>(end - start) : 1.0;
      samples.push_back({ns * 1e-6 / request.launches_per_sample, 0});
    }
    return Status::ok();
  }

  Result<cl_ulong> event_ns(cl_event event, cl_profiling_info what) const {
    cl_ulong ns = 0;
    const cl_int code = cl_.clGetEventProfilingInfo(event, what, sizeof ns, &ns, nullptr);
    if (code != CL_SUCCESS) return opencl_failure("reading an event's time", code);
    return ns;
  }

  // Twice the last-level cache: writing it leaves nothing of the kernel's data behind.
  Status make_scratch() {
    if (scratch_ != nullptr) return Status::ok();
    const std::size_t cache = info_.l2_bytes > 0 ? info_.l2_bytes : std::size_t{32} << 20;
    PURLIN_ASSIGN(scratch_, allocate(2 * cache));
    return Status::ok();
  }

  const OpenClFunctions cl_;
  cl_device_id device_;
  std::size_t alignment_ = 128;
  std::size_t largest_ = 0;
  ClOwned<cl_context> context_;
  ClOwned<cl_command_queue> queue_;
  std::unique_ptr<Buffer> scratch_;
  std::size_t nth_ = 0;   // launches with arguments in turn, so far
  bool batched_ = false;  // in the last one
};

class OpenClBackend : public Backend {
 public:
  std::string_view name() const override { return "opencl"; }

  Result<std::vector<DeviceInfo>> devices() override {
    PURLIN_ASSIGN(const OpenClFunctions cl, load_opencl());
    PURLIN_ASSIGN(const auto ids, list_opencl_devices(cl));
    std::vector<DeviceInfo> infos;
    for (const OpenClDeviceId& id : ids)
      infos.push_back(describe_opencl_device(cl, id, static_cast<int>(infos.size())));
    return infos;
  }

  Result<std::unique_ptr<Device>> open(int index) override {
    PURLIN_ASSIGN(const OpenClFunctions cl, load_opencl());
    PURLIN_ASSIGN(const auto ids, list_opencl_devices(cl));
    if (index < 0 || static_cast<std::size_t>(index) >= ids.size())
      return error(Code::kNotFound, "no device opencl:{}; there are {}, from opencl:0", index,
                   ids.size());
    const OpenClDeviceId id = ids[static_cast<std::size_t>(index)];
    auto device = std::make_unique<OpenClDevice>(cl, id, describe_opencl_device(cl, id, index));
    PURLIN_TRY(device->initialise());
    return std::unique_ptr<Device>(std::move(device));
  }
};

}  // namespace

std::unique_ptr<Backend> make_opencl_backend() { return std::make_unique<OpenClBackend>(); }

}  // namespace purlin::gpu
