// SPDX-License-Identifier: Apache-2.0
#include "gpu/fake/fake_device.h"

#include "base/text.h"
#include "base/time.h"
#include "gpu/launching.h"

#include <cmath>
#include <cstring>

namespace purlin::gpu {
namespace {

Status check_range(const Buffer& buffer, std::size_t offset, std::size_t bytes) {
  if (offset <= buffer.bytes() && bytes <= buffer.bytes() - offset) return Status::ok();
  return error(Code::kInvalid, "{} bytes at {} are outside a buffer of {}", bytes, offset,
               buffer.bytes());
}

std::uint8_t* bytes_of(Buffer& buffer) { return static_cast<FakeBuffer&>(buffer).data.data(); }
const std::uint8_t* bytes_of(const Buffer& buffer) {
  return static_cast<const FakeBuffer&>(buffer).data.data();
}

// D = epilogue(A * B) by the definition, from row-major matrices.
Status run_reference(const std::string& text, const Launch& launch) {
  PURLIN_ASSIGN(const LibraryOperation op, LibraryOperation::parse(text));
  const std::size_t buffers = op.has_bias() ? 4 : 3;
  if (launch.arguments.size() != buffers + 4)
    return error(Code::kInvalid, "the reference of {} got {} arguments", text,
                 launch.arguments.size());
  std::int64_t extents[4];  // M, N, K, BATCH
  for (std::size_t i = 0; i < 4; ++i)
    std::memcpy(&extents[i], launch.arguments[buffers + i].scalar.data(), sizeof extents[i]);
  const auto [m, n, k, batch] = extents;
  const auto at = [&](std::size_t argument, Dtype dtype, std::int64_t index) {
    const KernelArgument& from = launch.arguments[argument];
    return bytes_of(*from.buffer) + from.offset + static_cast<std::size_t>(index) * size_of(dtype);
  };
  for (std::int64_t z = 0; z < batch; ++z)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum +=
              load_element(op.a,
                           at(0, op.a, z * m * k + (op.transpose_a ? l * m + i : i * k + l))) *
              load_element(op.b, at(1, op.b, z * k * n + (op.transpose_b ? j * k + l : l * n + j)));
        if (op.has_bias()) sum += load_element(op.d, at(2, op.d, j));
        if (starts_with(op.epilogue, "relu")) sum = std::max(sum, 0.0);
        if (starts_with(op.epilogue, "gelu"))
          sum = 0.5 * sum * (1 + std::tanh(0.7978845608 * (sum + 0.044715 * sum * sum * sum)));
        store_element(op.d, at(buffers - 1, op.d, (z * m + i) * n + j), sum);
      }
  return Status::ok();
}

}  // namespace

FakeDevice::FakeDevice(FakeBehaviour behaviour)
    : behaviour_(std::move(behaviour)), random_(behaviour_.seed) {
  info_.id = "fake:0";
  info_.backend = "fake";
  info_.kind = "gpu";
  info_.name = "Fake device";
  info_.vendor = "Purlin";
  info_.arch = "fake_1";
  info_.driver = "1.0";
  info_.toolkit = "fake 1.0";
  info_.compute_units = 8;
  info_.clock_mhz = 1000;
  info_.memory_clock_mhz = 1000;
  info_.memory_bus_bits = 256;
  info_.memory_bytes = std::uint64_t{4} << 30;
  info_.l2_bytes = 4 << 20;
  info_.shared_memory_per_block = 48 << 10;
  info_.shared_memory_per_unit = 96 << 10;
  info_.registers_per_block = 65536;
  info_.registers_per_unit = 65536;
  info_.warp_size = 32;
  info_.max_threads_per_block = 1024;
  info_.max_threads_per_unit = 2048;
  info_.max_block = {1024, 1024, 64};
  info_.max_grid = {2147483647, 65535, 65535};
}

void FakeDevice::write_pattern(FakeBuffer& buffer, std::size_t offset, std::size_t bytes) {
  for (std::size_t i = 0; (i + 1) * sizeof(float) <= bytes; ++i) {
    const float value = 0.5F * static_cast<float>(i);
    std::memcpy(buffer.data.data() + offset + i * sizeof value, &value, sizeof value);
  }
}

// The image is the entry and the config themselves, so that it means the same to any process.
Result<Binary> FakeDevice::compile(const CompileRequest& request) {
  ++compiles;
  if (behaviour_.compile) PURLIN_TRY(behaviour_.compile(request));
  if (!request.library.empty()) return library_binary(request);
  Json image = Json::object({{"entry", request.entry}, {"config", to_json(request.config)}});
  // A library's reference says in its first line what it computes.
  if (request.entry == "library_reference" && starts_with(request.source, "// "))
    image.set("operation", request.source.substr(3, request.source.find('\n') - 3));
  const double seconds = behaviour_.compile_s ? behaviour_.compile_s(request.config) : 0;
  return Binary{request.entry, image.dump(), "", seconds};
}

Result<LibraryRuntime*> FakeDevice::library(std::string_view name) {
  if (library_ == nullptr) {
    PURLIN_ASSIGN(library_, start_library(name));
  }
  return library_.get();
}

Result<std::string> FakeDevice::library_version(std::string_view name) {
  PURLIN_ASSIGN(const LibraryRuntime* started, library(name));
  return started->version();
}

Result<LibrarySpace> FakeDevice::library_space(const LibraryOperation& operation,
                                               const ProblemShape& problem) {
  PURLIN_ASSIGN(LibraryRuntime * started, library(operation.library));
  return started->space(operation, problem);
}

std::optional<Resources> FakeDevice::resources(const Binary& binary) const {
  const Result<Json> image = Json::parse(binary.image);
  if (!behaviour_.resources || !image.is_ok()) return std::nullopt;
  const Result<Config> config = config_from_json((*image)["config"]);
  return config.is_ok() ? std::optional(behaviour_.resources(*config)) : std::nullopt;
}

Result<std::unique_ptr<Kernel>> FakeDevice::load(const Binary& binary) {
  if (is_library_binary(binary)) {
    PURLIN_ASSIGN(const LibraryToken token, read_library_binary(binary));
    PURLIN_ASSIGN(LibraryRuntime * started, library(token.operation.library));
    PURLIN_ASSIGN(auto made, started->load(token.operation, token.config));
    return std::unique_ptr<Kernel>(std::move(made));
  }
  auto image = Json::parse(binary.image);
  if (!image.is_ok() || !(*image)["config"].is_object())
    return error(Code::kInvalid, "the binary of '{}' is not of a fake device", binary.entry);
  auto kernel = std::make_unique<FakeKernel>();
  kernel->entry = (*image)["entry"].as_string();
  PURLIN_ASSIGN(kernel->config, config_from_json((*image)["config"]));
  kernel->operation = (*image)["operation"].as_string();
  static_cast<Resources&>(*kernel) =
      behaviour_.resources ? behaviour_.resources(kernel->config) : Resources{32};
  kernel->max_threads_per_block = info_.max_threads_per_block;
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Result<std::unique_ptr<Buffer>> FakeDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return error(Code::kInvalid, "a buffer of 0 bytes");
  if (bytes > info_.memory_bytes)
    return error(Code::kUnavailable, "a buffer of {} bytes does not fit the fake device's {}",
                 bytes, info_.memory_bytes);
  return std::unique_ptr<Buffer>(std::make_unique<FakeBuffer>(bytes));
}

Status FakeDevice::write(Buffer& buffer, std::size_t offset, const void* data, std::size_t bytes) {
  PURLIN_TRY(check_range(buffer, offset, bytes));
  if (bytes > 0) std::memcpy(bytes_of(buffer) + offset, data, bytes);
  return Status::ok();
}

Status FakeDevice::read(const Buffer& buffer, std::size_t offset, void* data, std::size_t bytes) {
  PURLIN_TRY(check_range(buffer, offset, bytes));
  if (bytes > 0) std::memcpy(data, bytes_of(buffer) + offset, bytes);
  return Status::ok();
}

Status FakeDevice::copy(Buffer& to, std::size_t to_offset, const Buffer& from,
                        std::size_t from_offset, std::size_t bytes) {
  PURLIN_TRY(check_range(to, to_offset, bytes));
  PURLIN_TRY(check_range(from, from_offset, bytes));
  if (bytes > 0) std::memmove(bytes_of(to) + to_offset, bytes_of(from) + from_offset, bytes);
  return Status::ok();
}

Status FakeDevice::fill(Buffer& buffer, std::size_t offset, std::uint8_t byte, std::size_t bytes) {
  PURLIN_TRY(check_range(buffer, offset, bytes));
  if (bytes > 0) std::memset(bytes_of(buffer) + offset, byte, bytes);
  return Status::ok();
}

Status FakeDevice::run(const Launch& launch) {
  PURLIN_TRY(check_launch(info_, launch, buffer_alignment()));
  ++launches;
  if (auto* of_library = dynamic_cast<LibraryKernel*>(launch.kernel))
    return run_library(*of_library, launch);
  const auto& kernel = static_cast<const FakeKernel&>(*launch.kernel);
  if (behaviour_.launch) PURLIN_TRY(behaviour_.launch(kernel, launch));
  if (!kernel.operation.empty()) return run_reference(kernel.operation, launch);
  return write_outputs(kernel, launch);
}

// The library writes the right result; the script may then spoil it.
Status FakeDevice::run_library(LibraryKernel& kernel, const Launch& launch) {
  FakeKernel as_fake;
  as_fake.config = kernel.config;
  if (behaviour_.launch) PURLIN_TRY(behaviour_.launch(as_fake, launch));
  std::vector<LibraryArgument> arguments;
  for (const KernelArgument& argument : launch.arguments) {
    LibraryArgument& given = arguments.emplace_back();
    given.scalar = argument.scalar;
    if (argument.buffer == nullptr) continue;
    given.address = bytes_of(*argument.buffer) + argument.offset;
    given.bytes = argument.bytes;
  }
  PURLIN_TRY(kernel.prepare(arguments));
  return kernel.enqueue(nullptr);
}

Status FakeDevice::write_outputs(const FakeKernel& kernel, const Launch& launch) {
  for (std::size_t i = launch.arguments.size(); i-- > 0;) {
    const KernelArgument& argument = launch.arguments[i];
    if (argument.buffer == nullptr) continue;
    auto& buffer = static_cast<FakeBuffer&>(*argument.buffer);
    const std::size_t bytes =
        argument.bytes > 0 ? argument.bytes : buffer.bytes() - argument.offset;
    if (behaviour_.write)
      behaviour_.write(kernel, launch, buffer, argument.offset, bytes);
    else
      write_pattern(buffer, argument.offset, bytes);
    break;
  }
  return Status::ok();
}

Result<double> FakeDevice::energy_mj() {
  if (!behaviour_.power_w) return Device::energy_mj();
  const std::lock_guard lock(meter_);
  const std::int64_t now_ns = system_clock().monotonic_ns();
  if (counted_ns_ > 0) used_mj_ += drawn_w_ * static_cast<double>(now_ns - counted_ns_) * 1e-6;
  counted_ns_ = now_ns;
  return used_mj_;
}

Result<std::map<std::string, double>> FakeDevice::count(const Launch& launch, bool flush_l2) {
  const auto* kernel = dynamic_cast<const FakeKernel*>(launch.kernel);
  if (!behaviour_.count || kernel == nullptr) return Device::count(launch, flush_l2);
  PURLIN_TRY(run(launch));
  return behaviour_.count(*kernel, launch);
}

Result<std::vector<Sample>> FakeDevice::time(const Launch& launch, const TimingRequest& request) {
  if (request.samples < 1 || request.launches_per_sample < 1)
    return error(Code::kInvalid, "timing takes at least one sample of one launch");
  PURLIN_TRY(run(launch));
  FakeKernel kernel;
  if (const auto* of_library = dynamic_cast<const LibraryKernel*>(launch.kernel))
    kernel.config = of_library->config;
  else
    kernel = static_cast<const FakeKernel&>(*launch.kernel);
  if (behaviour_.power_w) {
    PURLIN_TRY(energy_mj().status());  // counts until now with what was drawn before
    const std::lock_guard lock(meter_);
    drawn_w_ = behaviour_.power_w(kernel);
  }
  how_ = request.launches_per_sample == 1 ? "event" : graphs && request.graph ? "graph" : "batch";
  const double ms = behaviour_.time_ms ? behaviour_.time_ms(kernel, launch.shape) : 1.0;
  std::vector<Sample> samples;
  double spent_s = 0;
  while (static_cast<int>(samples.size()) < request.samples) {
    const double factor = std::max(1 + behaviour_.noise * random_.normal(), 0.01);
    samples.push_back({ms * factor, info_.clock_mhz});
    spent_s += samples.back().ms * 1e-3 * request.launches_per_sample;
    if (request.budget_s > 0 && spent_s >= request.budget_s) break;
  }
  return samples;
}

}  // namespace purlin::gpu
