// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml.h"

#include "base/library.h"
#include "base/text.h"

#include <map>
#include <mutex>
#include <vector>

namespace purlin::gpu {

// NVML's C ABI: results are an enum with 0 for success, devices are opaque pointers.
struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver_version)(char*, unsigned int) = nullptr;
  int (*by_pci)(const char*, void**) = nullptr;
  int (*by_uuid)(const char*, void**) = nullptr;
  int (*clock_info)(void*, int, unsigned int*) = nullptr;
  int (*clock_reasons)(void*, unsigned long long*) = nullptr;
  std::mutex mutex;
  std::map<std::string, void*> handles;  // looking a device up costs far more than reading a clock
};

namespace {

constexpr int kSmClock = 1;  // NVML_CLOCK_SM

struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr Reason kReasons[] = {
    {0x04, "power cap"},         {0x08, "hardware slowdown"}, {0x10, "sync boost"},
    {0x20, "thermal, software"}, {0x40, "thermal, hardware"}, {0x80, "power brake"},
    {0x100, "display clock"},
};

}  // namespace

Nvml::Nvml(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
Nvml::~Nvml() { functions_->shutdown(); }

Result<std::unique_ptr<Nvml>> Nvml::load() {
  auto library = Library::open({"libnvidia-ml.so.1"});
  if (!library.is_ok())
    return error(Code::kUnavailable,
                 "NVML (libnvidia-ml.so.1) is not found, so clocks are not recorded; it comes with "
                 "the NVIDIA driver");
  auto functions = std::make_unique<Functions>();
  const bool complete = library->bind(functions->init, "nvmlInit_v2") &&
                        library->bind(functions->shutdown, "nvmlShutdown") &&
                        library->bind(functions->driver_version, "nvmlSystemGetDriverVersion") &&
                        library->bind(functions->by_pci, "nvmlDeviceGetHandleByPciBusId_v2") &&
                        library->bind(functions->by_uuid, "nvmlDeviceGetHandleByUUID") &&
                        library->bind(functions->clock_info, "nvmlDeviceGetClockInfo");
  if (!complete)
    return error(Code::kUnavailable, "{} is too old; update the NVIDIA driver", library->name());
  library->bind(functions->clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  if (const int code = functions->init(); code != 0)
    return error(Code::kUnavailable,
                 "NVML does not start (error {}); check that nvidia-smi works here", code);
  return std::unique_ptr<Nvml>(new Nvml(std::move(functions)));
}

std::string Nvml::driver_version() const {
  char text[96] = {};
  return functions_->driver_version(text, sizeof text - 1) == 0 ? text : "";
}

void* Nvml::handle_of(const std::string& device) const {
  const std::lock_guard lock(functions_->mutex);
  auto [entry, fresh] = functions_->handles.try_emplace(device, nullptr);
  const auto look_up = starts_with(device, "GPU-") ? functions_->by_uuid : functions_->by_pci;
  if (fresh && look_up(device.c_str(), &entry->second) != 0) entry->second = nullptr;
  return entry->second;
}

double Nvml::sm_clock_mhz(const std::string& device) const {
  void* handle = handle_of(device);
  unsigned int mhz = 0;
  if (handle == nullptr || functions_->clock_info(handle, kSmClock, &mhz) != 0) return 0;
  return mhz;
}

std::string Nvml::clock_limits(const std::string& device) const {
  void* handle = handle_of(device);
  unsigned long long bits = 0;
  if (handle == nullptr || functions_->clock_reasons == nullptr ||
      functions_->clock_reasons(handle, &bits) != 0)
    return "";
  std::vector<std::string> names;
  for (const Reason& reason : kReasons)
    if ((bits & reason.bit) != 0) names.emplace_back(reason.name);
  return join(names, ", ");
}

}  // namespace purlin::gpu
