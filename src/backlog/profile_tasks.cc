// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_backlog.h"

#include "base/files.h"
#include "base/time.h"

#include <algorithm>
#include <optional>

namespace purlin::cli {
namespace {

// A row's problem in the order of the spec's dimensions; nullopt where the two do not name the same
// ones. A batch of one is no dimension; bytes that are read or written are none either.
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

std::optional<Match> match(const analyze::KernelStat& row, std::span<const KernelSpec> specs,
                           const ProblemShape& shape) {
  std::optional<Match> found;
  for (const KernelSpec& spec : specs) {
    const bool same_kernel = row.name.full == spec.entry || row.name.brief == spec.entry;
    const bool same_op = spec.op == row.name.op_class && takes(spec, row.dtype);
    if (!same_kernel && !same_op) continue;
    std::optional<ProblemShape> problem = problem_of(spec, shape);
    if (!problem) continue;
    Match candidate{&spec, std::move(*problem)};
    if (same_kernel) return candidate;
    // What a library computed is tuned first where it stands: by the library's own algorithms.
    const bool library = spec.library.has_value() && row.name.family == "cublas";
    if (!found || (library && !found->spec->library)) found = std::move(candidate);
  }
  return found;
}

bool is_tuned(const cache::Store& store, const Match& match, const DeviceInfo& device) {
  Result<cache::CacheKey> key = cache::make_key(*match.spec, match.problem, device, false);
  if (!key.is_ok()) return false;
  // Whoever profiles need not have compiled: the toolkit is not the profile's to state.
  key->toolkit.clear();
  key->policy.clear();
  return store.get(*key, match.problem).entry.has_value();
}

bool uses_opencl(const analyze::Report& report, const std::string& model) {
  const std::vector<DeviceInfo>& devices = report.environment.devices;
  return std::any_of(devices.begin(), devices.end(), [&](const DeviceInfo& device) {
    return device.name == model && device.backend == "opencl";
  });
}

}  // namespace

ProfileTasks tasks_of_profile(const analyze::Report& report, std::span<const KernelSpec> specs,
                              std::size_t top, const cache::Store& store) {
  ProfileTasks made;
  for (std::size_t i = 0; i < std::min(top, report.kernels.size()); ++i) {
    const analyze::KernelStat& row = report.kernels[i];
    const auto leave = [&](std::string_view why) {
      made.left_out.push_back(
          fmt::format("{} ({:.1f} % of the kernel time): {}", row.label, row.share * 100, why));
    };
    const Result<ProblemShape> shape = parse_shape(row.shape);
    if (row.shape.empty() || !shape.is_ok()) {
      leave(uses_opencl(report, row.device)
                ? "its problem shape is not known, as a capture of OpenCL tells none; "
                  "`purlin tune` it with the --shape it has"
                : "its problem shape is not known; profile with --ops on --gemm-shapes");
      continue;
    }
    const std::optional<Match> found = match(row, specs, *shape);
    if (!found) {
      leave(fmt::format("no spec computes {} {} of {}", row.name.op_class, row.shape,
                        row.dtype.empty() ? "an unknown type" : row.dtype));
      continue;
    }
    const auto& devices = report.environment.devices;
    const auto device =
        std::find_if(devices.begin(), devices.end(),
                     [&](const DeviceInfo& candidate) { return candidate.name == row.device; });
    if (device != devices.end() && is_tuned(store, *found, *device)) {
      leave(fmt::format("{} {} is tuned already", found->spec->name, found->problem.text()));
      continue;
    }
    cache::Task task;
    task.kind = "tune";
    task.kernel = found->spec->name;
    task.shape = found->problem.text();
    task.spec = absolute_path(found->spec->file);
    task.device = row.device;
    task.launches = static_cast<std::uint64_t>(row.duration.count());
    task.reason =
        fmt::format("{:.1f} % of the kernel time of a profile, as {}", row.share * 100, row.label);
    task.queued_at = format_rfc3339(system_clock().wall_ns());
    made.tasks.push_back(std::move(task));
  }
  return made;
}

}  // namespace purlin::cli
