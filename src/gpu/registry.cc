// SPDX-License-Identifier: Apache-2.0
#include "gpu/registry.h"

#include "base/text.h"
#include "gpu/fake/fake_device.h"

#include <algorithm>

namespace purlin::gpu {
namespace {

std::vector<std::unique_ptr<Backend>> all_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_cuda_backend());
  backends.push_back(make_opencl_backend());
  return backends;
}

// The order of "auto": CUDA devices first, then other GPUs, then accelerators and CPUs.
int rank(const DeviceInfo& info) {
  if (info.backend == "cuda") return 0;
  if (info.kind == "gpu") return 1;
  return info.kind == "cpu" ? 3 : 2;
}

Result<std::unique_ptr<Device>> open_best() {
  std::vector<std::string> problems;
  const std::vector<DeviceInfo> found = discover(&problems);
  if (found.empty())
    return error(
        Code::kUnavailable,
        "no device to run on.\n  {}\nInstall pocl-opencl-icd and ocl-icd-libopencl1 to use "
        "the CPU, or give --device replay:FILE; `purlin doctor` shows more",
        join(problems, "\n  "));
  return open_device(found.front().id);
}

}  // namespace

std::vector<DeviceInfo> discover(std::vector<std::string>* problems) {
  std::vector<DeviceInfo> found;
  for (const auto& backend : all_backends()) {
    auto devices = backend->devices();
    if (devices.is_ok())
      for (DeviceInfo& info : *devices) found.push_back(std::move(info));
    else if (problems != nullptr)
      problems->push_back(fmt::format("{}: {}", backend->name(), devices.status().message()));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return found;
}

Result<std::unique_ptr<Device>> open_device(std::string_view name) {
  if (name == "auto" || name.empty()) return open_best();
  const std::size_t colon = name.find(':');
  const std::string_view family = name.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view() : name.substr(colon + 1);
  if (family == "replay" || family == "fake") {
    if (rest.empty())
      return error(Code::kInvalid, "device '{}' needs a file: {}:FILE", name, family);
    return family == "replay" ? open_replay(std::string(rest)) : open_fake(std::string(rest));
  }
  std::vector<std::string> known = {"auto", "replay", "fake"};
  for (const auto& backend : all_backends()) {
    known.emplace_back(backend->name());
    if (family != backend->name()) continue;
    const auto index =
        colon == std::string_view::npos ? std::optional<std::int64_t>(0) : parse_int(rest);
    if (!index || *index < 0 || *index > 4096)
      return error(Code::kInvalid, "device '{}': '{}' is not a device number; use {}:0", name, rest,
                   family);
    return backend->open(static_cast<int>(*index));
  }
  const std::string near = nearest(family, known);
  return error(Code::kInvalid, "unknown device '{}'{}; use cuda:N, opencl:N, replay:FILE or auto",
               name, near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near));
}

}  // namespace purlin::gpu
