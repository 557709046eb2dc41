// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/platform.h"

#include "analyze/advise/rules/pricing.h"
#include "base/text.h"

#include <algorithm>
#include <iterator>

namespace purlin::analyze {
namespace {

// The words before a step's first colon, and whether they fit a platform. Libraries and languages
// of CUDA's world are of CUDA.
struct Audience {
  std::string_view label;
  bool (*fits)(const Platform&);
};
bool of_torch(const Platform& platform) { return platform.torch; }
bool of_cuda(const Platform& platform) { return platform.api == Platform::Api::kCuda; }
bool of_opencl(const Platform& platform) { return platform.api == Platform::Api::kOpencl; }
constexpr Audience kAudiences[] = {
    {"PyTorch", of_torch},
    {"CUDA", of_cuda},
    {"cuBLAS", of_cuda},
    {"cuBLASLt", of_cuda},
    {"cuDNN", of_cuda},
    {"CUTLASS", of_cuda},
    {"HIP", [](const Platform& platform) { return platform.api == Platform::Api::kHip; }},
    {"OpenCL", of_opencl},
    {"Triton", [](const Platform& platform) { return !of_opencl(platform); }},
    {"OpenMP, OpenACC", [](const Platform& platform) { return !of_opencl(platform); }},
    {"JAX", [](const Platform& platform) { return platform.jax; }},
    {"GPU", [](const Platform& platform) { return !platform.cpu; }},
};

// What a step names that older devices lack.
struct Needed {
  std::string_view phrase;
  int arch;
};
constexpr Needed kNeeded[] = {{"for TF32", 80},       {"FAST_TF32", 80}, {"with bfloat16", 80},
                              {"torch.bfloat16", 80}, {"cp.async", 80},  {"FP8 by", 89}};

bool device_has(const Platform& platform, std::string_view step) {
  return platform.arch <= 0 ||
         std::none_of(std::begin(kNeeded), std::end(kNeeded), [&](const Needed& one) {
           return platform.arch < one.arch && step.find(one.phrase) != std::string_view::npos;
         });
}

bool uses_torch(const Profile& profile, const std::vector<KernelStat>& rows) {
  const bool traced =
      std::any_of(profile.coverage.notes.begin(), profile.coverage.notes.end(),
                  [](const CoverageNote& note) { return note.cause == "torch_trace"; });
  const std::vector<std::string>& names = profile.timeline.names;
  const bool runs_ops = !profile.timeline.ops.empty() &&
                        std::any_of(names.begin(), names.end(), [](const std::string& name) {
                          return starts_with(name, "aten::");
                        });
  return traced || runs_ops || std::any_of(rows.begin(), rows.end(), [](const KernelStat& row) {
           return starts_with(row.op, "aten::") || row.name.family == "pytorch" ||
                  row.name.family == "triton";
         });
}

// Purlin read the texts of XLA's programs, or XLA made the kernels.
bool uses_jax(const Profile& profile, const std::vector<KernelStat>& rows) {
  const std::vector<CoverageNote>& notes = profile.coverage.notes;
  return profile.source == "xla" ||
         std::any_of(notes.begin(), notes.end(),
                     [](const CoverageNote& note) { return note.cause == "jax_programs"; }) ||
         std::any_of(rows.begin(), rows.end(),
                     [](const KernelStat& row) { return row.name.family == "xla"; });
}

}  // namespace

Platform platform_of(const Profile& profile, const std::vector<KernelStat>& rows) {
  Platform out;
  const std::vector<DeviceInfo>& devices = profile.environment.devices;
  const auto each = [&](auto&& holds) {
    return !devices.empty() && std::all_of(devices.begin(), devices.end(), holds);
  };
  const auto layer = [](const ProcessInfo& process) { return process.layer == "opencl"; };
  if (each([](const DeviceInfo& device) { return device.backend == "opencl"; }) ||
      (!profile.processes.empty() &&
       std::all_of(profile.processes.begin(), profile.processes.end(), layer)))
    out.api = Platform::Api::kOpencl;
  else if (each([](const DeviceInfo& device) { return starts_with(device.arch, "gfx"); }))
    out.api = Platform::Api::kHip;
  out.cpu = each([](const DeviceInfo& device) { return device.kind == "cpu"; });
  out.torch = uses_torch(profile, rows);
  out.jax = uses_jax(profile, rows);
  for (const DeviceInfo& device : devices)
    if (const int arch = architecture_number(device.arch); arch > 0)
      out.arch = out.arch > 0 ? std::min(out.arch, arch) : arch;
  return out;
}

bool fits(const Platform& platform, std::string_view instruction) {
  const std::string_view label =
      instruction.substr(0, std::min(instruction.find(": "), instruction.size()));
  const auto* audience = std::find_if(std::begin(kAudiences), std::end(kAudiences),
                                      [&](const Audience& one) { return one.label == label; });
  return (audience == std::end(kAudiences) || audience->fits(platform)) &&
         device_has(platform, instruction);
}

std::string_view route_of(const Platform& platform, const Intervention& one) {
  if (one.expertise != "kernel") return "";
  if (of_opencl(platform)) return "opencl";
  // What Triton's compiler decides by itself.
  constexpr std::string_view kOfThreads[] = {"shared_memory_conflicts",
                                             "avoid_bank_conflicts",
                                             "fewer_barriers",
                                             "unify_branches",
                                             "smaller_code",
                                             "specialize_warps",
                                             "local_gathers",
                                             "persistent_kernel",
                                             "coalesce",
                                             "more_instruction_parallelism"};
  const bool threads =
      std::find(std::begin(kOfThreads), std::end(kOfThreads), one.id) != std::end(kOfThreads);
  if (!threads && platform.torch) return "triton";
  return of_cuda(platform) ? "cuda" : "hip";
}

void keep_what_fits(const Platform& platform, std::vector<Intervention>& interventions) {
  for (Intervention& one : interventions)
    std::erase_if(one.how,
                  [&](const std::string& instruction) { return !fits(platform, instruction); });
  std::erase_if(interventions, [](const Intervention& one) { return one.how.empty(); });
}

}  // namespace purlin::analyze
