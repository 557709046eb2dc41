// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/supplement.h"

#include "analyze/kernel_name/kernel_name.h"
#include "analyze/roofline/work.h"
#include "analyze/stalls/stalls.h"
#include "base/text.h"
#include "model/device/gpu_table.h"

#include <algorithm>
#include <map>

namespace purlin::analyze {

Status name_gpu(Profile& profile, std::string_view gpu) {
  const GpuModel* model = find_gpu(gpu);
  if (model == nullptr) {
    std::vector<std::string> names;
    for (const GpuModel& one : gpu_table()) names.emplace_back(one.name);
    return error(Code::kInvalid, "no GPU '{}' in the table; it has {}", gpu, join(names, ", "));
  }
  int most = -1;
  for (const KernelRow& row : profile.kernels)
    if (row.device >= 0 && row.device < 1024) most = std::max(most, row.device);
  auto& devices = profile.environment.devices;
  if (most >= 0 && devices.size() <= static_cast<std::size_t>(most))
    devices.resize(static_cast<std::size_t>(most) + 1);
  int named = 0;
  for (DeviceInfo& device : devices) {
    if (!device.name.empty()) continue;
    device.name = model->name;
    device.kind = "gpu";
    if (device.arch.empty()) device.arch = model->arch;
    if (device.compute_units == 0) device.compute_units = model->units;
    if (device.memory_bytes == 0)
      device.memory_bytes = static_cast<std::uint64_t>(model->memory_gb * 1e9);
    ++named;
  }
  if (named == 0)
    return error(Code::kNotFound, "'{}': the profile names its GPU, {}", gpu,
                 devices.empty() ? "or has no kernels" : devices.front().name);
  return Status::ok();
}

Status give_shape(Profile& profile, std::string_view text) {
  constexpr std::string_view kForm =
      "give KERNEL=CLASS,DTYPE,DIMENSIONS, such as "
      "sgemm=gemm,f32,M=4096,N=4096,K=1024";
  const std::size_t equals = text.find('=');
  const std::size_t first = text.find(',', equals == std::string_view::npos ? 0 : equals);
  const std::size_t second = first == std::string_view::npos ? first : text.find(',', first + 1);
  if (equals == std::string_view::npos || equals == 0 || second == std::string_view::npos)
    return error(Code::kInvalid, "'{}': {}", text, kForm);
  const std::string_view kernel = text.substr(0, equals);
  const std::string_view op_class = text.substr(equals + 1, first - equals - 1);
  const std::string_view dtype = text.substr(first + 1, second - first - 1);
  const std::string shape(text.substr(second + 1));

  Problem problem;
  problem.op_class = op_class;
  problem.dimensions = dimensions_from_text(shape);
  problem.dtype = dtype_of(dtype);
  if (problem.empty())
    return error(Code::kInvalid, "'{}' is not a problem shape: {}", shape, kForm);
  if (problem.dtype.empty())
    return error(Code::kInvalid, "'{}' is not an element type: give f32, bf16, …", dtype);
  const Work work = work_of(problem);
  if (!work.flops && !work.bytes)
    return error(Code::kInvalid,
                 "'{}' does not determine the work of class '{}'; docs/concepts/problem-shapes.md "
                 "lists the dimensions of each class",
                 shape, op_class);
  int given = 0, has_one = 0;
  for (KernelRow& row : profile.kernels) {
    if (row.name.find(kernel) == std::string::npos &&
        demangle(row.name).find(kernel) == std::string::npos)
      continue;
    if (!row.shape.empty()) {
      ++has_one;
      continue;
    }
    row.op = op_class;
    row.shape = shape;
    row.dtype = problem.dtype;
    ++given;
  }
  if (given == 0)
    return error(Code::kNotFound, "'{}': {}", kernel,
                 has_one > 0 ? "the profile has a shape for each such kernel"
                             : "no kernel of the profile has that in its name");
  return Status::ok();
}

Status give_stalls(Profile& profile, const Profile& samples) {
  const bool any =
      std::any_of(samples.kernels.begin(), samples.kernels.end(),
                  [](const KernelRow& row) { return !read_stalls(row.counters).reasons.empty(); });
  if (!any) return error(Code::kInvalid, "the file holds no stall samples");
  std::map<std::string, const KernelRow*> by_name;
  for (const KernelRow& row : samples.kernels) {
    const KernelName name = describe_kernel(row.name);
    by_name.emplace(name.full, &row);
    by_name.emplace(name.brief, &row);
  }
  std::size_t given = 0;
  for (KernelRow& row : profile.kernels) {
    const KernelName name = describe_kernel(row.name);
    auto found = by_name.find(name.full);
    if (found == by_name.end()) found = by_name.find(name.brief);
    if (found == by_name.end()) continue;
    for (const Counter& counter : found->second->counters) {
      const auto same = [&](const Counter& own) { return own.name == counter.name; };
      if (std::none_of(row.counters.begin(), row.counters.end(), same))
        row.counters.push_back(counter);
    }
    ++given;
  }
  if (given == 0)
    return error(Code::kNotFound, "no sampled kernel is in the profile (of {})",
                 counted(samples.kernels.size(), "kernel"));
  return Status::ok();
}

}  // namespace purlin::analyze
