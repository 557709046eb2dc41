// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml.h"

#include "base/os/library.h"
#include "base/text.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace purlin::gpu {

struct Nvml::State {
  NvmlTable table;
  std::mutex mutex;
  std::map<std::string, void*> handles;  // a look-up takes far longer than a clock read
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

constexpr int kGpuTemperature = 0;            // NVML_TEMPERATURE_GPU
constexpr unsigned kBaseClock = 0xFFFFFF01u;  // NVML_CLOCK_LIMIT_ID_TDP
constexpr int kNoPermission = 4, kNotSupported = 3, kInsufficientSize = 7;

std::string refusal(int code) {
  if (code == kNoPermission) return "it needs root, or an administrator's permission";
  if (code == kNotSupported) return "this device or driver does not support it";
  return fmt::format("NVML error {}", code);
}

}  // namespace

Nvml::Nvml(std::unique_ptr<State> state) : state_(std::move(state)) {}
Nvml::~Nvml() { state_->table.shutdown(); }

Result<std::unique_ptr<Nvml>> Nvml::load() {
  auto library = Library::open({"libnvidia-ml.so.1"});
  if (!library.is_ok())
    return error(Code::kUnavailable,
                 "NVML (libnvidia-ml.so.1) is not found, so clocks are not recorded; it comes with "
                 "the NVIDIA driver");
  NvmlTable table;
  const bool complete = library->bind(table.init, "nvmlInit_v2") &&
                        library->bind(table.shutdown, "nvmlShutdown") &&
                        library->bind(table.driver_version, "nvmlSystemGetDriverVersion") &&
                        library->bind(table.by_pci, "nvmlDeviceGetHandleByPciBusId_v2") &&
                        library->bind(table.by_uuid, "nvmlDeviceGetHandleByUUID") &&
                        library->bind(table.clock_info, "nvmlDeviceGetClockInfo");
  if (!complete)
    return error(Code::kUnavailable, "{} is too old; update the NVIDIA driver", library->name());
  library->bind(table.clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  library->bind(table.temperature, "nvmlDeviceGetTemperature");
  library->bind(table.power, "nvmlDeviceGetPowerUsage");
  library->bind(table.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  library->bind(table.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  library->bind(table.lock_clocks, "nvmlDeviceSetGpuLockedClocks");
  library->bind(table.reset_clocks, "nvmlDeviceResetGpuLockedClocks");
  library->bind(table.energy, "nvmlDeviceGetTotalEnergyConsumption");
  return over(table);
}

Result<std::unique_ptr<Nvml>> Nvml::over(const NvmlTable& table) {
  if (const int code = table.init(); code != 0)
    return error(Code::kUnavailable,
                 "NVML does not start (error {}); check that nvidia-smi works here", code);
  auto state = std::make_unique<State>();
  state->table = table;
  return std::unique_ptr<Nvml>(new Nvml(std::move(state)));
}

std::string Nvml::driver_version() const {
  char text[96] = {};
  return state_->table.driver_version(text, sizeof text - 1) == 0 ? text : "";
}

void* Nvml::handle_of(const std::string& device) const {
  const std::lock_guard lock(state_->mutex);
  auto [entry, fresh] = state_->handles.try_emplace(device, nullptr);
  const bool uuid = starts_with(device, "GPU-") || starts_with(device, "MIG-");
  const auto look_up = uuid ? state_->table.by_uuid : state_->table.by_pci;
  if (fresh && look_up(device.c_str(), &entry->second) != 0) entry->second = nullptr;
  return entry->second;
}

double Nvml::sm_clock_mhz(const std::string& device) const {
  void* handle = handle_of(device);
  unsigned int mhz = 0;
  if (handle == nullptr || state_->table.clock_info(handle, kSmClock, &mhz) != 0) return 0;
  return mhz;
}

std::uint64_t Nvml::limit_bits(const std::string& device) const {
  void* handle = handle_of(device);
  unsigned long long bits = 0;
  if (handle == nullptr || state_->table.clock_reasons == nullptr ||
      state_->table.clock_reasons(handle, &bits) != 0)
    return 0;
  return bits;
}

std::vector<std::string> Nvml::limit_names(std::uint64_t bits) {
  std::vector<std::string> names;
  for (const Reason& reason : kReasons)
    if ((bits & reason.bit) != 0) names.emplace_back(reason.name);
  return names;
}

std::string Nvml::clock_limits(const std::string& device) const {
  return join(limit_names(limit_bits(device)), ", ");
}

double Nvml::read(int (*function)(void*, unsigned int*), const std::string& device) const {
  void* handle = handle_of(device);
  unsigned int value = 0;
  if (handle == nullptr || function == nullptr || function(handle, &value) != 0) return 0;
  return value;
}

double Nvml::temperature_c(const std::string& device) const {
  void* handle = handle_of(device);
  unsigned int celsius = 0;
  if (handle == nullptr || state_->table.temperature == nullptr ||
      state_->table.temperature(handle, kGpuTemperature, &celsius) != 0)
    return 0;
  return celsius;
}

double Nvml::power_w(const std::string& device) const {
  return read(state_->table.power, device) / 1e3;
}

Result<double> Nvml::energy_mj(const std::string& device) const {
  void* handle = handle_of(device);
  if (handle == nullptr)
    return error(Code::kUnavailable, "NVML does not know the device '{}'", device);
  if (state_->table.energy == nullptr)
    return error(Code::kUnavailable, "this driver counts no energy; update it to 410 or newer");
  unsigned long long mj = 0;
  if (const int code = state_->table.energy(handle, &mj); code != 0)
    return error(Code::kUnavailable,
                 "the energy of '{}' cannot be read: {}; counting takes a Volta or newer GPU that "
                 "is not shared out in slices (MIG)",
                 device, refusal(code));
  return static_cast<double>(mj);
}

double Nvml::power_limit_w(const std::string& device) const {
  return read(state_->table.power_limit, device) / 1e3;
}

std::optional<std::vector<unsigned>> Nvml::compute_processes(const std::string& device) const {
  void* handle = handle_of(device);
  if (handle == nullptr || state_->table.processes == nullptr) return std::nullopt;
  // Their number may grow between asking for it and asking for them.
  std::vector<NvmlTable::ProcessInfo> found(64);
  for (int attempt = 0; attempt < 4; ++attempt) {
    auto count = static_cast<unsigned int>(found.size());
    const int code = state_->table.processes(handle, &count, found.data());
    if (code == kInsufficientSize && count < 100000) {
      found.resize(std::max<std::size_t>(count, found.size()) * 2);
      continue;
    }
    if (code != 0) return std::nullopt;
    std::vector<unsigned> pids;
    for (unsigned int i = 0; i < count && i < found.size(); ++i) pids.push_back(found[i].pid);
    return pids;
  }
  return std::nullopt;
}

Status Nvml::lock_clocks(const std::string& device, unsigned low_mhz, unsigned high_mhz) const {
  void* handle = handle_of(device);
  if (handle == nullptr || state_->table.lock_clocks == nullptr ||
      state_->table.reset_clocks == nullptr)
    return error(Code::kUnavailable, "the clock of '{}' cannot be locked: NVML does not offer it",
                 device);
  if (low_mhz == 0 && high_mhz == 0) low_mhz = high_mhz = kBaseClock;
  const int code = state_->table.lock_clocks(handle, low_mhz, high_mhz);
  if (code == 0) return Status::ok();
  return error(Code::kUnavailable, "the clock of '{}' cannot be locked: {}", device, refusal(code));
}

Status Nvml::unlock_clocks(const std::string& device) const {
  void* handle = handle_of(device);
  if (handle == nullptr || state_->table.reset_clocks == nullptr)
    return error(Code::kUnavailable, "the clock of '{}' cannot be unlocked: NVML does not offer it",
                 device);
  const int code = state_->table.reset_clocks(handle);
  if (code == 0) return Status::ok();
  return error(Code::kUnavailable,
               "the clock of '{}' cannot be unlocked: {}; `nvidia-smi --reset-gpu-clocks` does it",
               device, refusal(code));
}

}  // namespace purlin::gpu
