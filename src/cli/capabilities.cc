// SPDX-License-Identifier: Apache-2.0
#include "cli/capabilities.h"

#include "base/files.h"
#include "base/library.h"
#include "base/text.h"
#include "cache/store/store.h"
#include "cli/tune/kernels_directory.h"
#include "gpu/nvml.h"
#include "gpu/vendor_libraries.h"
#include "profile/launcher.h"

#include <algorithm>
#include <unistd.h>

namespace purlin::cli {
namespace {

using State = CapabilityState;

const std::vector<int> kCudaMajors = {13, 12};
constexpr std::uint64_t kCapSysAdmin = std::uint64_t{1} << 21;
constexpr const char* kNeedsGpu = "needs an NVIDIA GPU with its driver";

// CUDA_VERSION's way: 13000 -> "13.0".
std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Capability cuda_driver() {
  Capability result{"cuda_driver", "CUDA driver", State::kMissing, "", ""};
  auto library = Library::open({"libcuda.so.1"});
  if (!library.is_ok()) {
    result.evidence = "no libcuda.so.1";
    result.fix = "install the NVIDIA driver, or start the container with --gpus all";
    return result;
  }
  int (*get_version)(int*) = nullptr;
  int (*init)(unsigned int) = nullptr;
  int version = 0;
  if (library->bind(get_version, "cuDriverGetVersion")) get_version(&version);
  const int code = library->bind(init, "cuInit") ? init(0) : -1;
  result.evidence =
      fmt::format("{}, supports CUDA {}", library->name(), cuda_version_text(version));
  if (code == 0) {
    result.state = State::kOk;
  } else {
    result.evidence += fmt::format("; cuInit fails with error {}", code);
    result.fix =
        "check that nvidia-smi works here; after a driver update, reboot or reload the module";
  }
  return result;
}

std::string device_text(const DeviceInfo& device) {
  return fmt::format("{}: {} ({}, {} {}, {})", device.id, device.name, device.arch,
                     device.compute_units, device.kind == "cpu" ? "cores" : "units",
                     format_bytes(static_cast<double>(device.memory_bytes)));
}

Capability devices_of(std::string_view backend, const char* id, const char* title,
                      const std::vector<DeviceInfo>& devices,
                      const std::vector<std::string>& problems) {
  Capability result{id, title, State::kMissing, "", ""};
  std::vector<std::string> found;
  for (const DeviceInfo& device : devices)
    if (device.backend == backend) found.push_back(device_text(device));
  if (!found.empty()) {
    result.state = State::kOk;
    result.evidence = join(found, "; ");
    return result;
  }
  result.evidence = "none";
  const std::string prefix = std::string(backend) + ": ";
  for (const std::string& problem : problems)
    if (starts_with(problem, prefix)) result.fix = problem.substr(prefix.size());
  return result;
}

// One of NVIDIA's libraries: whether it loads, and the version it says it has.
struct Probe {
  const char* id;
  const char* title;
  const char* library;
  const char* needed_for;
  const char* fix;
  std::string (*version)(const Library& library);
};

std::string nvrtc_version(const Library& library) {
  int (*get)(int*, int*) = nullptr;
  int major = 0, minor = 0;
  if (!library.bind(get, "nvrtcVersion") || get(&major, &minor) != 0) return "";
  return fmt::format("{}.{}", major, minor);
}

std::string cupti_version(const Library& library) {
  int (*get)(std::uint32_t*) = nullptr;
  std::uint32_t version = 0;  // 130001: CUDA 13.0, update 1
  if (!library.bind(get, "cuptiGetVersion") || get(&version) != 0) return "";
  if (version < 1000) return std::to_string(version);  // older ones are merely counted
  return fmt::format("{}.{} (API {})", version / 10000, version % 10000 / 100, version);
}

std::string cublaslt_version(const Library& library) {
  std::size_t (*get)() = nullptr;
  if (!library.bind(get, "cublasLtGetVersion")) return "";
  const std::size_t version = get();  // 130002: 13.0.2
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

constexpr Probe kProbes[] = {
    {"nvrtc", "NVRTC (CUDA compiler)", "nvrtc", "compiling CUDA kernels",
     "install the CUDA toolkit or `pip install nvidia-cuda-nvrtc`, or set PURLIN_NVRTC to the "
     "library",
     nvrtc_version},
    {"cupti", "CUPTI (CUDA profiling)", "cupti", "profiling CUDA programs",
     "install the CUDA toolkit's CUPTI or `pip install nvidia-cuda-cupti`, or set PURLIN_CUPTI to "
     "the library",
     cupti_version},
    {"cublaslt", "cuBLASLt", "cublasLt", "comparing gemm with the vendor's",
     "install the CUDA toolkit or `pip install nvidia-cublas`, or set PURLIN_CUBLASLT to the "
     "library",
     cublaslt_version},
};

Capability probe(const Probe& what) {
  Capability result{what.id, what.title, State::kMissing, "", ""};
  auto library = Library::open(gpu::vendor_library_names(what.library, kCudaMajors));
  if (!library.is_ok()) {
    result.evidence = fmt::format("not found; needed for {}", what.needed_for);
    result.fix = what.fix;
    return result;
  }
  const std::string version = what.version(*library);
  result.state = version.empty() ? State::kDegraded : State::kOk;
  result.evidence =
      fmt::format("{} {}", version.empty() ? "unknown version" : version, library->name());
  if (version.empty()) result.fix = what.fix;
  return result;
}

std::uint64_t effective_capabilities() {
  const std::string status = read_file("/proc/self/status", 64 << 10).value_or("");
  constexpr std::string_view kLabel = "CapEff:";
  const std::size_t at = status.find(kLabel);
  if (at == std::string::npos) return 0;
  return std::strtoull(status.c_str() + at + kLabel.size(), nullptr, 16);
}

Capability nvml_state(const gpu::Nvml* nvml, const Status& problem) {
  if (nvml != nullptr)
    return {"nvml", "NVML (clocks, power)", State::kOk, "driver " + nvml->driver_version(), ""};
  return {"nvml", "NVML (clocks, power)", State::kMissing, "not usable", problem.message()};
}

Capability clocks(const gpu::Nvml* nvml, const std::vector<DeviceInfo>& devices) {
  Capability result{"clocks", "Clocks", State::kMissing, "", ""};
  std::vector<std::string> seen;
  for (const DeviceInfo& device : devices) {
    if (device.backend != "cuda" || nvml == nullptr) continue;
    const double now = nvml->sm_clock_mhz(device.uuid);
    const std::string limits = nvml->clock_limits(device.uuid);
    seen.push_back(fmt::format("{}: {:.0f} of {:.0f} MHz{}{}", device.id, now, device.clock_mhz,
                               limits.empty() ? "" : ", held down by ", limits));
  }
  if (seen.empty()) {
    result.evidence = "not readable, so samples carry no clock";
    result.fix = kNeedsGpu;
    return result;
  }
  const bool administrator = (effective_capabilities() & kCapSysAdmin) != 0;
  result.state = administrator ? State::kOk : State::kDegraded;
  result.evidence = fmt::format("{}; {}", join(seen, "; "),
                                administrator ? "this user may lock them"
                                              : "this user may not lock them, samples record them");
  if (!administrator)
    result.fix = "for steadier figures let root run `nvidia-smi -lgc MHZ` before measuring";
  return result;
}

Capability opencl_loader() {
  Capability result{"opencl_loader", "OpenCL loader", State::kMissing, "", ""};
  auto library = Library::open({"libOpenCL.so.1", "libOpenCL.so"});
  if (library.is_ok()) {
    result.state = State::kOk;
    result.evidence = library->name();
  } else {
    result.evidence = "no libOpenCL.so.1";
    result.fix = "install ocl-icd-libopencl1 (Debian, Ubuntu) or your distribution's OpenCL loader";
  }
  return result;
}

Capability capture_libraries() {
  const profile::CaptureLibraries found = profile::find_capture_libraries();
  Capability result{"capture_libraries", "Capture libraries", State::kOk, "", ""};
  result.evidence = fmt::format("CUDA: {}; OpenCL: {}", found.cuda.empty() ? "none" : found.cuda,
                                found.opencl.empty() ? "none" : found.opencl);
  if (found.cuda.empty() || found.opencl.empty()) {
    result.state = found.cuda.empty() && found.opencl.empty() ? State::kMissing : State::kDegraded;
    result.fix =
        "reinstall Purlin; a build has the CUDA library only where it found CUDA's headers";
  }
  return result;
}

Capability config_cache() {
  const std::string directory = cache::Store::default_directory();
  // The nearest folder that exists decides: looking must not create anything.
  std::string existing = absolute_path(directory);
  while (!file_exists(existing) && existing != "/" && !existing.empty())
    existing = parent_path(existing);
  Capability result{"config_cache", "Config cache", State::kOk, directory, ""};
  if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    result.state = State::kMissing;
    result.evidence += fmt::format(" ({} is not writable)", existing);
    result.fix = "make it writable, or set PURLIN_CACHE to a folder that is";
  }
  return result;
}

Capability kernel_samples() {
  Capability result{"kernel_samples", "Sample kernels", State::kMissing, "", ""};
  const auto directory = kernels_directory();
  if (!directory.is_ok()) {
    result.evidence = "not found";
    result.fix = directory.status().message();
    return result;
  }
  int specs = 0;
  for (const std::string& name : list_directory(*directory).value_or({})) {
    if (ends_with(name, ".toml")) ++specs;
    for (const std::string& inner : list_directory(join_path(*directory, name)).value_or({}))
      if (ends_with(inner, ".toml")) ++specs;
  }
  result.state = specs > 0 ? State::kOk : State::kMissing;
  result.evidence = fmt::format("{} specs in {}", specs, *directory);
  if (specs == 0) result.fix = "reinstall Purlin, or set PURLIN_KERNELS to the folder with them";
  return result;
}

}  // namespace

std::string_view state_name(CapabilityState state) {
  return state == State::kOk ? "ok" : state == State::kDegraded ? "degraded" : "missing";
}

Capability examine_counters(std::string_view driver_parameters, std::uint64_t capabilities) {
  Capability result{"gpu_counters", "GPU counters", State::kMissing, "", ""};
  constexpr std::string_view kKey = "RmProfilingAdminOnly:";
  const std::size_t at = driver_parameters.find(kKey);
  if (at == std::string_view::npos) {
    result.evidence = "no NVIDIA kernel driver that says who may read them";
    result.fix = kNeedsGpu;
    return result;
  }
  const std::string_view line = driver_parameters.substr(at + kKey.size());
  if (trim(line.substr(0, line.find('\n'))) == "0") {
    result.state = State::kOk;
    result.evidence = "every user may read them";
  } else if ((capabilities & kCapSysAdmin) != 0) {
    result.state = State::kOk;
    result.evidence = "for administrators only, which this user is";
  } else {
    result.state = State::kDegraded;
    result.evidence = "for administrators only; profiling works, --counters and --stalls do not";
    result.fix =
        "run as root (containers: --cap-add SYS_ADMIN), or put `options nvidia "
        "NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia-profiling.conf and "
        "reboot";
  }
  return result;
}

std::vector<Capability> examine_machine(const std::vector<DeviceInfo>& devices,
                                        const std::vector<std::string>& problems) {
  auto nvml = gpu::Nvml::load();
  const gpu::Nvml* handle = nvml.is_ok() ? nvml->get() : nullptr;
  std::vector<Capability> all;
  all.push_back(cuda_driver());
  all.push_back(devices_of("cuda", "cuda_devices", "CUDA devices", devices, problems));
  for (const Probe& what : kProbes) all.push_back(probe(what));
  all.push_back(examine_counters(read_file("/proc/driver/nvidia/params", 64 << 10).value_or(""),
                                 effective_capabilities()));
  all.push_back(nvml_state(handle, nvml.status()));
  all.push_back(clocks(handle, devices));
  all.push_back(opencl_loader());
  all.push_back(devices_of("opencl", "opencl_devices", "OpenCL devices", devices, problems));
  all.push_back(capture_libraries());
  all.push_back(config_cache());
  all.push_back(kernel_samples());
  return all;
}

void add_capabilities(Json& document, const std::vector<Capability>& capabilities) {
  Json list = Json::array();
  for (const Capability& capability : capabilities)
    list.push(Json::object({{"id", capability.id},
                            {"title", capability.title},
                            {"state", state_name(capability.state)},
                            {"evidence", capability.evidence},
                            {"fix", capability.fix.empty() ? Json() : Json(capability.fix)}}));
  document.set("capabilities", std::move(list));
}

std::string render_capabilities(const std::vector<Capability>& capabilities,
                                const Terminal& terminal) {
  std::size_t width = 0;
  for (const Capability& capability : capabilities)
    width = std::max(width, capability.title.size());
  std::string text;
  for (const Capability& capability : capabilities) {
    const Style style = capability.state == State::kOk         ? Style::kGreen
                        : capability.state == State::kDegraded ? Style::kYellow
                                                               : Style::kRed;
    const std::string state = fmt::format("{:<8}", state_name(capability.state));
    text += fmt::format("{}  {:<{}}  {}\n", terminal.paint(style, state), capability.title, width,
                        capability.evidence);
    if (!capability.fix.empty())
      text += fmt::format("{:10}{:{}}  {} {}\n", "", "", width,
                          terminal.paint(Style::kBold, "fix:"), capability.fix);
  }
  return text;
}

}  // namespace purlin::cli
