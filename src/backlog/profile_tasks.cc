// SPDX-License-Identifier: Apache-2.0
#include "backlog/profile_tasks.h"

#include "base/files.h"
#include "base/time.h"

#include <algorithm>
#include <optional>

namespace purlin::backlog {
namespace {

// The problem of a kernel in the order of the spec's dimensions; nullopt where the names of the
// dimensions differ. A batch of 1 and the bytes that are read or written are not dimensions.
std::optional<ProblemShape> problem_of(const KernelSpec& spec, const ProblemShape& shape) {
  ProblemShape problem;
  for (const auto& item : spec.problem.items()) {
    const std::int64_t* extent = shape.find(item.first);
    if (extent == nullptr) return std::nullopt;
    problem.set(item.first, *extent);
  }
  for (const auto& [name, extent] : shape.items())
    if (spec.problem.find(name) == nullptr && name != "read" && name != "write" &&
        !(name == "B" && extent == 1))
      return std::nullopt;
  return problem;
}

bool takes(const KernelSpec& spec, std::string_view dtype) {
  return std::any_of(spec.arguments.begin(), spec.arguments.end(), [&](const Argument& argument) {
    return argument.role != Argument::Role::kScalar && name_of(argument.dtype) == dtype;
  });
}

struct Match {
  const KernelSpec* spec = nullptr;
  ProblemShape problem;
};

std::optional<Match> match(const ProfiledKernel& kernel, std::span<const KernelSpec> specs,
                           const ProblemShape& shape) {
  std::optional<Match> found;
  for (const KernelSpec& spec : specs) {
    const bool same_kernel = kernel.full == spec.entry || kernel.brief == spec.entry;
    const bool same_op = spec.op == kernel.op_class && takes(spec, kernel.dtype);
    if (!same_kernel && !same_op) continue;
    std::optional<ProblemShape> problem = problem_of(spec, shape);
    if (!problem) continue;
    Match candidate{&spec, std::move(*problem)};
    if (same_kernel) return candidate;
    // A kernel of a library is tuned by the library's algorithms first.
    const bool library = spec.library.has_value() && kernel.family == "cublas";
    if (!found || (library && !found->spec->library)) found = std::move(candidate);
  }
  return found;
}

bool is_tuned(const cache::Store& store, const Match& match, const DeviceInfo& device) {
  Result<cache::CacheKey> key = cache::make_key(*match.spec, match.problem, device, false);
  if (!key.is_ok()) return false;
  // A profile does not state the toolkit that compiles the spec.
  key->toolkit.clear();
  key->policy.clear();
  return store.get(*key, match.problem).entry.has_value();
}

bool has_opencl(std::span<const DeviceInfo> devices, const std::string& model) {
  return std::any_of(devices.begin(), devices.end(), [&](const DeviceInfo& device) {
    return device.name == model && device.backend == "opencl";
  });
}

// The reason why a kernel has no task, or its task.
struct Decision {
  std::string reason;
  Task task;
};

// A capture of OpenCL reports no problem shape. The spec of the very kernel has one that its author
// chose.
std::optional<Match> match_by_name(const ProfiledKernel& kernel,
                                   std::span<const KernelSpec> specs) {
  for (const KernelSpec& spec : specs)
    if (spec.sources.contains("opencl") &&
        (kernel.full == spec.entry || kernel.brief == spec.entry))
      return Match{&spec, spec.problem};
  return std::nullopt;
}

Decision decide(const ProfiledKernel& kernel, std::span<const DeviceInfo> devices,
                std::span<const KernelSpec> specs, const cache::Store& store) {
  const Result<ProblemShape> shape = parse_shape(kernel.shape);
  const bool shaped = !kernel.shape.empty() && shape.is_ok();
  const bool opencl = has_opencl(devices, kernel.device);
  const std::optional<Match> found = shaped   ? match(kernel, specs, *shape)
                                     : opencl ? match_by_name(kernel, specs)
                                              : std::nullopt;
  if (!found && !shaped)
    return {opencl ? fmt::format("no spec has the kernel '{}', and a capture of OpenCL does not "
                                 "report the problem shape; --specs names its spec",
                                 kernel.brief)
                   : "its problem shape is not known; profile with --ops on --gemm-shapes",
            {}};
  if (!found)
    return {fmt::format("no spec computes {} {} of {}", kernel.op_class, kernel.shape,
                        kernel.dtype.empty() ? "an unknown type" : kernel.dtype),
            {}};
  const auto device = std::find_if(devices.begin(), devices.end(), [&](const DeviceInfo& one) {
    return one.name == kernel.device;
  });
  if (device != devices.end() && is_tuned(store, *found, *device))
    return {fmt::format("{} {} is tuned already", found->spec->name, found->problem.text()), {}};
  Task task;
  task.key.kind = "tune";
  task.key.kernel = found->spec->name;
  task.key.shape = found->problem.text();
  task.key.device = kernel.device;
  task.spec = absolute_path(found->spec->file);
  task.launches = static_cast<std::uint64_t>(kernel.launches);
  if (kernel.launches > 0) task.launch_ns = kernel.total_ns / kernel.launches;
  if (kernel.utilization > 0) task.headroom = std::max(1 - kernel.utilization, 0.0);
  task.reason =
      fmt::format("{:.1f} % of the kernel time of a profile, as {}{}", kernel.share * 100,
                  kernel.label, shaped ? "" : "; the shape is the spec's, for none was recorded");
  task.queued_at = task.first_queued_at = format_rfc3339(system_clock().wall_ns());
  return {"", std::move(task)};
}

// Adds the GPU time of `other`, which is about the same kernel and shape.
void add_time(Task& task, const Task& other) {
  const double own_ns = static_cast<double>(task.launches) * task.launch_ns;
  const double other_ns = static_cast<double>(other.launches) * other.launch_ns;
  if (task.headroom && other.headroom && own_ns + other_ns > 0)
    task.headroom = (*task.headroom * own_ns + *other.headroom * other_ns) / (own_ns + other_ns);
  else
    task.headroom.reset();
  task.launches += other.launches;
  if (task.launches > 0) task.launch_ns = (own_ns + other_ns) / static_cast<double>(task.launches);
}

}  // namespace

ProfileTasks profile_tasks(std::span<const ProfiledKernel> kernels,
                           std::span<const DeviceInfo> devices, std::span<const KernelSpec> specs,
                           const cache::Store& store) {
  ProfileTasks made;
  for (const ProfiledKernel& kernel : kernels) {
    Decision decision = decide(kernel, devices, specs, store);
    if (!decision.reason.empty()) {
      made.left_out.push_back(fmt::format("{} ({:.1f} % of the kernel time): {}", kernel.label,
                                          kernel.share * 100, decision.reason));
      continue;
    }
    const auto same = std::find_if(made.tasks.begin(), made.tasks.end(),
                                   [&](const Task& task) { return task.key == decision.task.key; });
    if (same == made.tasks.end())
      made.tasks.push_back(std::move(decision.task));
    else
      add_time(*same, decision.task);
  }
  return made;
}

}  // namespace purlin::backlog
