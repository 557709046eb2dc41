// SPDX-License-Identifier: Apache-2.0
#include "gpu/capabilities.h"

#include "base/files.h"
#include "base/os/library.h"
#include "base/text.h"
#include "gpu/nvml.h"
#include "gpu/vendor_libraries.h"

#include <algorithm>

namespace purlin::gpu {
namespace {

const std::vector<int> kExaminedMajors = {13, 12};
constexpr std::uint64_t kCapSysAdmin = std::uint64_t{1} << 21;
constexpr const char* kNeedsGpu = "needs an NVIDIA GPU with its driver";  // where a driver is there

// From the number of CUDA_VERSION: 13000 -> "13.0".
std::string driver_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Capability driver_capability() {
  Capability result{"cuda_driver", "CUDA driver", CapabilityState::kMissing, "", ""};
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
      fmt::format("{}, supports CUDA {}", library->name(), driver_version_text(version));
  if (code == 0) {
    result.state = CapabilityState::kOk;
  } else {
    result.evidence += fmt::format("; cuInit fails with error {}", code);
    result.fix =
        "check that nvidia-smi works here; after a driver update, reboot or reload the module";
  }
  return result;
}

std::string examined_text(const DeviceInfo& device) {
  return fmt::format("{}: {} ({}, {} {}, {})", device.id, device.name, device.arch,
                     device.compute_units, device.kind == "cpu" ? "cores" : "units",
                     format_bytes(static_cast<double>(device.memory_bytes)));
}

Capability device_capability(std::string_view backend, const char* id, const char* title,
                             const std::vector<DeviceInfo>& devices,
                             const std::vector<std::string>& problems) {
  Capability result{id, title, CapabilityState::kMissing, "", ""};
  std::vector<std::string> found;
  for (const DeviceInfo& device : devices)
    if (device.backend == backend) found.push_back(examined_text(device));
  if (!found.empty()) {
    result.state = CapabilityState::kOk;
    result.evidence = join(found, "; ");
    return result;
  }
  result.evidence = "none";
  const std::string prefix = std::string(backend) + ": ";
  for (const std::string& problem : problems)
    if (starts_with(problem, prefix)) result.fix = problem.substr(prefix.size());
  if (result.fix.empty())
    result.fix =
        backend == "cuda"
            ? "check that `nvidia-smi -L` lists a GPU and CUDA_VISIBLE_DEVICES is not empty"
            : "install the vendor's OpenCL driver, or pocl-opencl-icd for the CPU";
  return result;
}

// One of NVIDIA's libraries, and how to read its version.
struct LibraryProbe {
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

constexpr LibraryProbe kLibraryProbes[] = {
    {"nvrtc", "NVRTC (CUDA compiler)", "nvrtc", "compiling CUDA kernels",
     "install the CUDA toolkit or `pip install nvidia-cuda-nvrtc`, or set PURLIN_NVRTC to the "
     "library",
     nvrtc_version},
    {"cupti", "CUPTI (CUDA profiling)", "cupti", "profiling CUDA programs",
     "install the CUDA toolkit's CUPTI or `pip install nvidia-cuda-cupti`, or set PURLIN_CUPTI to "
     "the library",
     cupti_version},
    {"cublaslt", "cuBLASLt", "cublasLt", "comparing gemm with cuBLASLt",
     "install the CUDA toolkit or `pip install nvidia-cublas`, or set PURLIN_CUBLASLT to the "
     "library",
     cublaslt_version},
};

Capability library_capability(const LibraryProbe& what) {
  Capability result{what.id, what.title, CapabilityState::kMissing, "", ""};
  auto library = Library::open(vendor_library_names(what.library, kExaminedMajors));
  if (!library.is_ok()) {
    result.evidence = fmt::format("not found; needed for {}", what.needed_for);
    result.fix = what.fix;
    return result;
  }
  const std::string version = what.version(*library);
  result.state = version.empty() ? CapabilityState::kDegraded : CapabilityState::kOk;
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

Capability nvml_capability(const Nvml* nvml, const Status& problem) {
  if (nvml != nullptr)
    return {"nvml", "NVML (clocks, power)", CapabilityState::kOk,
            "driver " + nvml->driver_version(), ""};
  return {"nvml", "NVML (clocks, power)", CapabilityState::kMissing, "not usable",
          problem.message()};
}

Capability clock_capability(const Nvml* nvml, const std::vector<DeviceInfo>& devices) {
  Capability result{"clocks", "Clocks", CapabilityState::kMissing, "", ""};
  std::vector<std::string> seen;
  for (const DeviceInfo& device : devices) {
    if (device.backend != "cuda" || nvml == nullptr) continue;
    const double now = nvml->sm_clock_mhz(device.uuid);
    const std::string limits = nvml->clock_limits(device.uuid);
    seen.push_back(fmt::format("{}: {:.0f} of {:.0f} MHz{}{}", device.id, now, device.clock_mhz,
                               limits.empty() ? "" : ", limited by ", limits));
  }
  if (seen.empty()) {
    result.evidence = "not readable, so samples carry no clock";
    result.fix = kNeedsGpu;
    return result;
  }
  const bool administrator = (effective_capabilities() & kCapSysAdmin) != 0;
  result.state = administrator ? CapabilityState::kOk : CapabilityState::kDegraded;
  result.evidence = fmt::format("{}; {}", join(seen, "; "),
                                administrator ? "this user may lock them"
                                              : "this user may not lock them, samples record them");
  if (!administrator)
    result.fix = "for steadier results, let root run `nvidia-smi -lgc MHZ` before measuring";
  return result;
}

Capability loader_capability() {
  Capability result{"opencl_loader", "OpenCL loader", CapabilityState::kMissing, "", ""};
  auto library = Library::open({"libOpenCL.so.1", "libOpenCL.so"});
  if (library.is_ok()) {
    result.state = CapabilityState::kOk;
    result.evidence = library->name();
  } else {
    result.evidence = "no libOpenCL.so.1";
    result.fix = "install ocl-icd-libopencl1 (Debian, Ubuntu) or your distribution's OpenCL loader";
  }
  return result;
}

// Without a driver, what needs it has the fix of the driver: the first of `all`.
void share_fix(std::vector<Capability>& all, std::initializer_list<std::string_view> ids) {
  if (all.front().state == CapabilityState::kOk) return;
  for (Capability& capability : all)
    if (std::find(ids.begin(), ids.end(), capability.id) != ids.end() &&
        capability.state != CapabilityState::kOk)
      capability.fix = all.front().fix;
}

}  // namespace

Capability examine_counters(std::string_view driver_parameters, std::uint64_t capabilities) {
  Capability result{"gpu_counters", "GPU counters", CapabilityState::kMissing, "", ""};
  constexpr std::string_view kKey = "RmProfilingAdminOnly:";
  const std::size_t at = driver_parameters.find(kKey);
  if (at == std::string_view::npos) {
    result.evidence = "no NVIDIA kernel driver with a setting for them";
    result.fix = kNeedsGpu;
    return result;
  }
  const std::string_view line = driver_parameters.substr(at + kKey.size());
  if (trim(line.substr(0, line.find('\n'))) == "0") {
    result.state = CapabilityState::kOk;
    result.evidence = "every user may read them";
  } else if ((capabilities & kCapSysAdmin) != 0) {
    result.state = CapabilityState::kOk;
    result.evidence = "for administrators only, which this user is";
  } else {
    result.state = CapabilityState::kDegraded;
    result.evidence = "for administrators only; profiling works, --counters and --stalls do not";
    result.fix =
        "run as root (containers: --cap-add SYS_ADMIN), or put `options nvidia "
        "NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia-profiling.conf and "
        "reboot";
  }
  return result;
}

std::vector<Capability> examine_devices(const std::vector<DeviceInfo>& devices,
                                        const std::vector<std::string>& problems) {
  auto nvml = Nvml::load();
  const Nvml* handle = nvml.is_ok() ? nvml->get() : nullptr;
  std::vector<Capability> all;
  all.push_back(driver_capability());
  all.push_back(device_capability("cuda", "cuda_devices", "CUDA devices", devices, problems));
  for (const LibraryProbe& what : kLibraryProbes) all.push_back(library_capability(what));
  all.push_back(examine_counters(read_file("/proc/driver/nvidia/params", 64 << 10).value_or(""),
                                 effective_capabilities()));
  all.push_back(nvml_capability(handle, nvml.status()));
  all.push_back(clock_capability(handle, devices));
  share_fix(all, {"cuda_devices", "gpu_counters", "nvml", "clocks"});
  const std::size_t loader = all.size();
  all.push_back(loader_capability());
  all.push_back(device_capability("opencl", "opencl_devices", "OpenCL devices", devices, problems));
  if (all[loader].state != CapabilityState::kOk) all.back().fix = all[loader].fix;
  return all;
}

}  // namespace purlin::gpu
