// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/device.h"

#include "gpu/cuda/facts.h"
#include "gpu/cuda/tensor_map.h"
#include "gpu/launching.h"

namespace purlin::gpu {
namespace {

constexpr int kDefaultDynamicShared = 48 << 10;  // what a launch gets without asking
constexpr std::uint32_t kPortableCluster = 8;    // blocks; more needs the kernel's consent

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(const CudaDriver& driver, CUdeviceptr address, std::size_t size)
      : Buffer(size), driver_(driver), address_(address) {}
  ~CudaBuffer() override { driver_.cuMemFree_v2(address_); }
  CUdeviceptr at(std::size_t offset) const { return address_ + offset; }

 private:
  const CudaDriver& driver_;
  CUdeviceptr address_;
};

class CudaKernel : public Kernel {
 public:
  CudaKernel(const CudaDriver& driver, CUmodule module) : driver_(driver), module_(module) {}
  ~CudaKernel() override { driver_.cuModuleUnload(module_); }
  CUfunction function = nullptr;
  bool sizes_known = false;
  std::vector<std::size_t> sizes;  // of the parameters, where the driver reports them
  int dynamic_shared_allowed = kDefaultDynamicShared;
  // Whether it ran: a first launch may load code or grow the stack, and waits for the device.
  bool warm = false;

 private:
  const CudaDriver& driver_;
  CUmodule module_;
};

// Copies reach it without a detour through memory of the driver.
class PinnedMemory : public HostMemory {
 public:
  PinnedMemory(const CudaDriver& driver, void* data, std::size_t bytes)
      : HostMemory(data, bytes), driver_(driver) {}
  ~PinnedMemory() override { driver_.cuMemFreeHost(data()); }

 private:
  const CudaDriver& driver_;
};

bool& warm_of(Kernel& kernel) {
  auto* of_library = dynamic_cast<LibraryKernel*>(&kernel);
  return of_library != nullptr ? of_library->warm : static_cast<CudaKernel&>(kernel).warm;
}

// Of one launch, at most: a library may split a sum, zero a workspace and add up the parts.
int commands_of(Kernel& kernel) { return dynamic_cast<LibraryKernel*>(&kernel) != nullptr ? 4 : 1; }

CUdeviceptr address_of(const Buffer& buffer, std::size_t offset) {
  return static_cast<const CudaBuffer&>(buffer).at(offset);
}

Status check_copy_range(const Buffer& buffer, std::size_t offset, std::size_t bytes) {
  if (offset <= buffer.bytes() && bytes <= buffer.bytes() - offset) return Status::ok();
  return error(Code::kInvalid, "{} bytes at {} are outside a buffer of {}", bytes, offset,
               buffer.bytes());
}

}  // namespace

// The arguments as the driver takes them: pointers to values that stay where they are.
struct CudaDevice::Parameters {
  std::vector<CUdeviceptr> addresses;
  std::vector<EncodedTensorMap> maps;
  std::vector<void*> values;
  std::vector<LibraryArgument> of_library;  // in place of those, for a library's kernel
};

CudaDevice::CudaDevice(const CudaDriver& driver, DeviceInfo info, CudaTools tools)
    : driver_(driver), tools_(std::move(tools)) {
  info_ = std::move(info);
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const CudaDriver& driver, int index,
                                                     DeviceInfo info, CudaTools tools) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(driver, std::move(info), std::move(tools)));
  CudaDevice& self = *device;
  self.index_ = index;
  PURLIN_TRY(self.check("cuDeviceGet", driver.cuDeviceGet(&self.device_, index)));
  self.pci_bus_id_ = pci_bus_id(driver, self.device_);
  return device;
}

CudaDevice::~CudaDevice() {
  counters_.reset();
  library_.reset();
  timer_.reset();
  scratch_.reset();
  if (stream_ != nullptr) driver_.cuStreamDestroy_v2(stream_);
  if (context_ != nullptr) driver_.cuDevicePrimaryCtxRelease_v2(device_);
}

Status CudaDevice::check(std::string_view what, CUresult result) const {
  return result == CUDA_SUCCESS
             ? Status::ok()
             : cuda_failure(driver_, fmt::format("{} on {}", what, info_.id), result);
}

// A thread may hold several devices, but only one context is current. It is made when it is first
// needed: it takes a few tenths of a second and half a gigabyte of the device, and a process that
// only compiles does without.
Status CudaDevice::make_current() {
  if (context_ == nullptr)
    PURLIN_TRY(
        check("cuDevicePrimaryCtxRetain", driver_.cuDevicePrimaryCtxRetain(&context_, device_)));
  PURLIN_TRY(check("cuCtxSetCurrent", driver_.cuCtxSetCurrent(context_)));
  if (timer_ != nullptr) return Status::ok();
  if (stream_ == nullptr)
    PURLIN_TRY(check("cuStreamCreate", driver_.cuStreamCreate(&stream_, CU_STREAM_DEFAULT)));
  timer_ = std::make_unique<StreamTimer>(driver_, stream_, info_.id);
  return Status::ok();
}

Result<LibraryRuntime*> CudaDevice::library(std::string_view name) {
  PURLIN_TRY(make_current());
  if (library_ == nullptr) {
    PURLIN_ASSIGN(library_, start_library(name));
  }
  return library_.get();
}

Result<std::string> CudaDevice::library_version(std::string_view name) {
  PURLIN_ASSIGN(const LibraryRuntime* started, library(name));
  return started->version();
}

Result<LibrarySpace> CudaDevice::library_space(const LibraryOperation& operation,
                                               const ProblemShape& problem) {
  PURLIN_ASSIGN(LibraryRuntime * started, library(operation.library));
  return started->space(operation, problem);
}

Result<Binary> CudaTools::compile(const CompileRequest& request,
                                  const std::string& device_arch) const {
  PURLIN_ASSIGN(const std::string arch, choose_arch(request.archs, device_arch));
  if (request.compiler == "nvcc") return nvcc->compile(request, arch);
  if (nvrtc == nullptr) return nvrtc_problem;
  return nvrtc->compile(request, arch);
}

Result<Binary> CudaDevice::compile(const CompileRequest& request) {
  if (!request.library.empty()) return library_binary(request);
  return tools_.compile(request, info_.arch);
}

std::string CudaDevice::compiler_version(const CompileRequest& request) {
  return request.compiler == "nvcc" ? tools_.nvcc->version().value_or("") : "";
}

Result<std::unique_ptr<Kernel>> CudaDevice::load(const Binary& binary) {
  PURLIN_TRY(make_current());
  if (is_library_binary(binary)) {
    PURLIN_ASSIGN(const LibraryToken token, read_library_binary(binary));
    PURLIN_ASSIGN(LibraryRuntime * started, library(token.operation.library));
    PURLIN_ASSIGN(auto made, started->load(token.operation, token.config));
    return std::unique_ptr<Kernel>(std::move(made));
  }
  char log[4096] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log - 1)};
  CUmodule module = nullptr;
  CUresult result = driver_.cuModuleLoadDataEx(&module, binary.image.c_str(), 2, options, values);
  if (result != CUDA_SUCCESS) {
    const Status status = check("loading the binary of '" + binary.entry + "'", result);
    return log[0] == '\0' ? status : Status(status.code(), status.message() + "\n" + log);
  }
  auto kernel = std::make_unique<CudaKernel>(driver_, module);
  PURLIN_TRY(check("looking up '" + binary.entry + "'",
                   driver_.cuModuleGetFunction(&kernel->function, module, binary.entry.c_str())));
  const auto fact = [&](CUfunction_attribute attribute) {
    int value = 0;
    return driver_.cuFuncGetAttribute(&value, attribute, kernel->function) == CUDA_SUCCESS ? value
                                                                                           : 0;
  };
  kernel->registers = fact(CU_FUNC_ATTRIBUTE_NUM_REGS);
  kernel->static_shared_bytes = fact(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  kernel->local_bytes = fact(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  kernel->max_threads_per_block = fact(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  if (driver_.cuFuncGetParamInfo != nullptr) {
    kernel->sizes_known = true;
    std::size_t offset = 0, size = 0;
    // The index after the last is an error; 4 KiB of parameters bound the count.
    while (kernel->sizes.size() < 4096 &&
           driver_.cuFuncGetParamInfo(kernel->function, kernel->sizes.size(), &offset, &size) ==
               CUDA_SUCCESS)
      kernel->sizes.push_back(size);
  }
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Result<std::unique_ptr<Buffer>> CudaDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return error(Code::kInvalid, "a buffer of 0 bytes");
  PURLIN_TRY(make_current());
  CUdeviceptr address = 0;
  PURLIN_TRY(
      check(fmt::format("allocating {} bytes", bytes), driver_.cuMemAlloc_v2(&address, bytes)));
  return std::unique_ptr<Buffer>(std::make_unique<CudaBuffer>(driver_, address, bytes));
}

Status CudaDevice::write(Buffer& buffer, std::size_t offset, const void* data, std::size_t bytes) {
  PURLIN_TRY(check_copy_range(buffer, offset, bytes));
  if (bytes == 0) return Status::ok();
  return check("copying to the device",
               driver_.cuMemcpyHtoD_v2(address_of(buffer, offset), data, bytes));
}

Status CudaDevice::read(const Buffer& buffer, std::size_t offset, void* data, std::size_t bytes) {
  PURLIN_TRY(check_copy_range(buffer, offset, bytes));
  if (bytes == 0) return Status::ok();
  return check("copying from the device",
               driver_.cuMemcpyDtoH_v2(data, address_of(buffer, offset), bytes));
}

std::unique_ptr<HostMemory> CudaDevice::host_memory(std::size_t bytes) {
  void* data = nullptr;
  if (make_current().is_ok() && driver_.cuMemHostAlloc(&data, bytes, 0) == CUDA_SUCCESS)
    return std::make_unique<PinnedMemory>(driver_, data, bytes);
  return Device::host_memory(bytes);
}

Status CudaDevice::copy(Buffer& to, std::size_t to_offset, const Buffer& from,
                        std::size_t from_offset, std::size_t bytes) {
  PURLIN_TRY(check_copy_range(to, to_offset, bytes));
  PURLIN_TRY(check_copy_range(from, from_offset, bytes));
  if (bytes == 0) return Status::ok();
  return check(
      "copying on the device",
      driver_.cuMemcpyDtoD_v2(address_of(to, to_offset), address_of(from, from_offset), bytes));
}

Status CudaDevice::fill(Buffer& buffer, std::size_t offset, std::uint8_t byte, std::size_t bytes) {
  PURLIN_TRY(check_copy_range(buffer, offset, bytes));
  if (bytes == 0) return Status::ok();
  PURLIN_TRY(
      check("filling", driver_.cuMemsetD8Async(address_of(buffer, offset), byte, bytes, stream_)));
  return synchronize("filling");
}

Status CudaDevice::synchronize(std::string_view what) {
  const Status status = check(what, driver_.cuStreamSynchronize(stream_));
  // An error that appears only here happened on the device, and the context is lost.
  return status.is_ok() ? status : Status(Code::kFailed, status.message());
}

Status CudaDevice::bind(const Launch& launch, const std::vector<KernelArgument>& arguments,
                        Parameters& parameters) const {
  if (dynamic_cast<LibraryKernel*>(launch.kernel) != nullptr) {
    for (const KernelArgument& argument : arguments) {
      LibraryArgument& given = parameters.of_library.emplace_back();
      given.scalar = argument.scalar;
      if (argument.buffer == nullptr) continue;
      given.address = reinterpret_cast<void*>(address_of(*argument.buffer, argument.offset));
      given.bytes = argument.bytes;
    }
    return Status::ok();
  }
  const auto& kernel = static_cast<const CudaKernel&>(*launch.kernel);
  const std::size_t count = arguments.size();
  if (kernel.sizes_known && count != kernel.sizes.size())
    return error(Code::kInvalid, "the kernel takes {} arguments, the launch gives {}",
                 kernel.sizes.size(), count);
  parameters.addresses.resize(count);
  parameters.maps.resize(count);
  parameters.values.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const KernelArgument& argument = arguments[i];
    const bool scalar = argument.buffer == nullptr;
    const bool mapped = !scalar && argument.tensor_map != nullptr;
    const std::size_t size = scalar   ? argument.scalar.size()
                             : mapped ? sizeof(EncodedTensorMap)
                                      : sizeof(CUdeviceptr);
    if (kernel.sizes_known && size != kernel.sizes[i])
      return error(Code::kInvalid, "kernel argument {} has {} bytes, the launch gives {}", i,
                   kernel.sizes[i], size);
    if (!scalar) parameters.addresses[i] = address_of(*argument.buffer, argument.offset);
    if (mapped) {
      Result<EncodedTensorMap> map =
          encode_tensor_map(driver_, *argument.tensor_map, parameters.addresses[i]);
      PURLIN_TRY(map.status().with_context(fmt::format("kernel argument {}", i)));
      parameters.maps[i] = *map;
    }
    parameters.values[i] = scalar   ? const_cast<char*>(argument.scalar.data())
                           : mapped ? static_cast<void*>(&parameters.maps[i])
                                    : static_cast<void*>(&parameters.addresses[i]);
  }
  return Status::ok();
}

Status CudaDevice::prepare(const Launch& launch, Parameters& parameters) {
  PURLIN_TRY(check_launch(info_, launch, buffer_alignment()));
  PURLIN_TRY(make_current());
  PURLIN_TRY(bind(launch, launch.arguments, parameters));
  if (auto* of_library = dynamic_cast<LibraryKernel*>(launch.kernel))
    return of_library->prepare(parameters.of_library);
  auto& kernel = static_cast<CudaKernel&>(*launch.kernel);
  const int dynamic = static_cast<int>(launch.shape.dynamic_shared_bytes);
  if (dynamic > kernel.dynamic_shared_allowed) {
    PURLIN_TRY(
        check(fmt::format("allowing {} bytes of dynamic shared memory", dynamic),
              driver_.cuFuncSetAttribute(
                  kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic)));
    kernel.dynamic_shared_allowed = dynamic;
  }
  const Dim3& cluster = launch.shape.cluster;
  if (cluster != Dim3{1, 1, 1} && driver_.cuLaunchKernelEx == nullptr)
    return error(Code::kInvalid, "this driver has no clusters; they need 520 or newer");
  if (cluster[0] * cluster[1] * cluster[2] > kPortableCluster)
    PURLIN_TRY(check("allowing clusters of more than 8 blocks",
                     driver_.cuFuncSetAttribute(
                         kernel.function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)));
  return Status::ok();
}

Status CudaDevice::enqueue(const Launch& launch, Parameters& parameters) {
  if (auto* of_library = dynamic_cast<LibraryKernel*>(launch.kernel))
    return of_library->enqueue(stream_);
  const LaunchShape& shape = launch.shape;
  const CUfunction function = static_cast<CudaKernel&>(*launch.kernel).function;
  CUresult result = CUDA_SUCCESS;
  if (shape.cluster == Dim3{1, 1, 1}) {
    result = driver_.cuLaunchKernel(
        function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0], shape.block[1],
        shape.block[2], shape.dynamic_shared_bytes, stream_, parameters.values.data(), nullptr);
  } else {
    CUlaunchAttribute cluster{};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = shape.cluster[0];
    cluster.value.clusterDim.y = shape.cluster[1];
    cluster.value.clusterDim.z = shape.cluster[2];
    CUlaunchConfig config{};
    config.gridDimX = shape.grid[0];
    config.gridDimY = shape.grid[1];
    config.gridDimZ = shape.grid[2];
    config.blockDimX = shape.block[0];
    config.blockDimY = shape.block[1];
    config.blockDimZ = shape.block[2];
    config.sharedMemBytes = shape.dynamic_shared_bytes;
    config.hStream = stream_;
    config.attrs = &cluster;
    config.numAttrs = 1;
    result = driver_.cuLaunchKernelEx(&config, function, parameters.values.data(), nullptr);
  }
  if (result == CUDA_SUCCESS) return Status::ok();
  return cuda_failure(driver_, fmt::format("launching {} on {}", to_text(shape), info_.id), result);
}

Status CudaDevice::run(const Launch& launch) {
  Parameters parameters;
  PURLIN_TRY(prepare(launch, parameters));
  PURLIN_TRY(enqueue(launch, parameters));
  PURLIN_TRY(synchronize("the kernel"));
  warm_of(*launch.kernel) = true;
  return Status::ok();
}

Result<StreamWork> CudaDevice::work_of(const Launch& launch, const TimingRequest& request,
                                       std::vector<Parameters>& sets) {
  sets.resize(1 + launch.further_arguments.size());
  PURLIN_TRY(prepare(launch, sets.front()));
  for (std::size_t i = 1; i < sets.size(); ++i)
    PURLIN_TRY(bind(launch, launch.further_arguments[i - 1], sets[i]));
  if (!warm_of(*launch.kernel)) PURLIN_TRY(run(launch));
  StreamWork work;
  auto* const of_library = dynamic_cast<LibraryKernel*>(launch.kernel);
  work.enqueue = [this, &launch, &sets, of_library](std::size_t nth) -> Status {
    Parameters& set = sets[nth % sets.size()];
    if (of_library != nullptr && sets.size() > 1) PURLIN_TRY(of_library->prepare(set.of_library));
    return enqueue(launch, set);
  };
  work.commands = commands_of(*launch.kernel);
  work.clock_mhz = [this] { return current_clock_mhz(); };
  if (request.flush_l2) {
    PURLIN_TRY(make_scratch());
    work.flush = [this](std::size_t sample) {
      return check("flushing L2", driver_.cuMemsetD8Async(address_of(*scratch_, 0),
                                                          static_cast<unsigned char>(sample),
                                                          scratch_->bytes(), stream_));
    };
  }
  return work;
}

Result<std::vector<Sample>> CudaDevice::time(const Launch& launch, const TimingRequest& request) {
  std::vector<Parameters> sets;
  PURLIN_ASSIGN(const StreamWork work, work_of(launch, request, sets));
  return timer_->time(work, request);
}

Result<Busy> CudaDevice::keep_busy(const Launch& launch, const TimingRequest& request,
                                   const GoOn& go_on) {
  std::vector<Parameters> sets;
  PURLIN_ASSIGN(const StreamWork work, work_of(launch, request, sets));
  return timer_->keep_busy(work, request, go_on);
}

Result<std::map<std::string, double>> CudaDevice::count(const Launch& launch, bool flush_l2) {
  Parameters parameters;
  PURLIN_TRY(prepare(launch, parameters));
  if (!warm_of(*launch.kernel)) PURLIN_TRY(run(launch));
  if (counters_ == nullptr) {
    if (!tools_.open_counters)
      return error(Code::kUnavailable, "{} is used without CUPTI", info_.id);
    PURLIN_ASSIGN(counters_, tools_.open_counters());
  }
  if (flush_l2) PURLIN_TRY(make_scratch());
  const auto prepare = [&] {
    return flush_l2 ? fill(*scratch_, 0, 0, scratch_->bytes()) : Status::ok();
  };
  auto counted =
      counters_->count(context_, index_, prepare, [&] { return enqueue(launch, parameters); });
  PURLIN_TRY(synchronize("the counted kernel"));
  return counted;
}

// Twice L2: its replacement is not exactly least-recently-used.
Status CudaDevice::make_scratch() {
  if (scratch_ != nullptr) return Status::ok();
  const std::size_t cache = info_.l2_bytes > 0 ? info_.l2_bytes : std::size_t{64} << 20;
  PURLIN_ASSIGN(scratch_, allocate(2 * cache));
  return Status::ok();
}

double CudaDevice::current_clock_mhz() {
  return tools_.nvml != nullptr ? tools_.nvml->sm_clock_mhz(pci_bus_id_) : 0;
}

Result<double> CudaDevice::energy_mj() {
  if (tools_.nvml != nullptr) return tools_.nvml->energy_mj(pci_bus_id_);
  return error(
      Code::kUnavailable,
      "the energy of {} is read through NVML (libnvidia-ml.so.1), which does not load here",
      info_.id);
}

}  // namespace purlin::gpu
