// SPDX-License-Identifier: Apache-2.0
#include "gpu/launching.h"

#include <algorithm>

namespace purlin::gpu {
namespace {

constexpr int kMaxInFlight = 64;  // bounds events and the driver's queue

std::string macro_text(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::string text = fmt::format("{}", std::get<double>(value));
  // "2" would make an integer of a real, and integer division of a division.
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

Status check_dimensions(const DeviceInfo& device, const LaunchShape& shape) {
  constexpr const char* kAxes[] = {"x", "y", "z"};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (shape.grid[axis] == 0 || shape.block[axis] == 0 || shape.cluster[axis] == 0)
      return error(Code::kInvalid, "launch {} has an extent of 0", to_text(shape));
    if (device.max_block[axis] > 0 && shape.block[axis] > device.max_block[axis])
      return error(Code::kInvalid, "block.{} = {} is over the limit of {} on {}", kAxes[axis],
                   shape.block[axis], device.max_block[axis], device.name);
    if (device.max_grid[axis] > 0 && shape.grid[axis] > device.max_grid[axis])
      return error(Code::kInvalid, "grid.{} = {} is over the limit of {} on {}", kAxes[axis],
                   shape.grid[axis], device.max_grid[axis], device.name);
    if (shape.grid[axis] % shape.cluster[axis] != 0)
      return error(Code::kInvalid, "grid.{} = {} is not a multiple of the cluster's {}",
                   kAxes[axis], shape.grid[axis], shape.cluster[axis]);
  }
  return Status::ok();
}

Status check_arguments(const std::vector<KernelArgument>& arguments, std::size_t alignment) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& argument = arguments[i];
    if (argument.buffer == nullptr) {
      if (argument.scalar.empty())
        return error(Code::kInvalid, "argument {} is neither a buffer nor a scalar", i);
      continue;
    }
    if (argument.offset % alignment != 0)
      return error(Code::kInvalid, "argument {}: offset {} is not a multiple of {} bytes", i,
                   argument.offset, alignment);
    if (argument.offset >= argument.buffer->bytes() ||
        argument.bytes > argument.buffer->bytes() - argument.offset)
      return error(Code::kInvalid, "argument {}: bytes {} to {} are outside its buffer of {}", i,
                   argument.offset, argument.offset + argument.bytes, argument.buffer->bytes());
  }
  return Status::ok();
}

}  // namespace

std::vector<std::string> macro_options(const Config& config) {
  std::vector<std::string> options;
  for (const auto& [name, value] : config.items())
    options.push_back("-D" + name + "=" + macro_text(value));
  return options;
}

Status check_launch(const DeviceInfo& device, const Launch& launch, std::size_t buffer_alignment) {
  if (launch.kernel == nullptr) return error(Code::kInvalid, "a launch without a kernel");
  const LaunchShape& shape = launch.shape;
  PURLIN_TRY(check_dimensions(device, shape));
  const std::uint64_t threads = shape.threads_per_block();
  if (device.max_threads_per_block > 0 &&
      threads > static_cast<std::uint64_t>(device.max_threads_per_block))
    return error(Code::kInvalid, "{} threads per block are over the limit of {} on {}", threads,
                 device.max_threads_per_block, device.name);
  const Kernel& kernel = *launch.kernel;
  if (kernel.max_threads_per_block > 0 &&
      threads > static_cast<std::uint64_t>(kernel.max_threads_per_block))
    return error(Code::kInvalid,
                 "{} threads per block are over the limit of {} for this kernel as compiled "
                 "(its registers or its declared work-group size)",
                 threads, kernel.max_threads_per_block);
  const std::int64_t shared = kernel.static_shared_bytes + shape.dynamic_shared_bytes;
  if (device.shared_memory_per_block > 0 && shared > device.shared_memory_per_block)
    return error(Code::kInvalid, "{} bytes of shared memory are over the limit of {} on {}", shared,
                 device.shared_memory_per_block, device.name);
  PURLIN_TRY(check_arguments(launch.arguments, buffer_alignment));
  for (const std::vector<KernelArgument>& further : launch.further_arguments)
    PURLIN_TRY(check_arguments(further, buffer_alignment));
  return Status::ok();
}

Result<Busy> Device::keep_busy(const Launch& launch, const TimingRequest& request,
                               const GoOn& go_on) {
  const std::int64_t start_ns = system_clock().monotonic_ns();
  Busy busy;
  do {
    PURLIN_ASSIGN(const std::vector<Sample> samples, time(launch, request));
    for (const Sample& sample : samples)
      busy.busy_s += sample.ms * 1e-3 * request.launches_per_sample;
    busy.launches += static_cast<double>(samples.size()) * request.launches_per_sample;
    busy.elapsed_s = static_cast<double>(system_clock().monotonic_ns() - start_ns) * 1e-9;
  } while (go_on(busy));
  return busy;
}

Result<std::vector<Sample>> sample_in_chunks(const TimingRequest& request, Clock& clock,
                                             const SampleChunk& chunk) {
  if (request.samples < 1 || request.launches_per_sample < 1)
    return error(Code::kInvalid, "timing takes at least one sample of one launch, not {} of {}",
                 request.samples, request.launches_per_sample);
  const std::int64_t start = clock.monotonic_ns();
  std::vector<Sample> samples;
  // Under a budget the first chunk is one sample: nothing is known of the kernel's duration yet.
  int count = request.budget_s > 0 ? 1 : kMaxInFlight;
  while (static_cast<int>(samples.size()) < request.samples) {
    count = std::min({count, kMaxInFlight, request.samples - static_cast<int>(samples.size())});
    PURLIN_TRY(chunk(count, samples));
    if (request.budget_s <= 0) continue;
    const double spent_s = static_cast<double>(clock.monotonic_ns() - start) * 1e-9;
    const double left_s = request.budget_s - spent_s;
    if (left_s <= 0) break;
    const double each_s = std::max(spent_s / static_cast<double>(samples.size()), 1e-9);
    count = static_cast<int>(std::clamp(left_s / each_s, 1.0, double{kMaxInFlight}));
  }
  return samples;
}

}  // namespace purlin::gpu
