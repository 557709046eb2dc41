// SPDX-License-Identifier: Apache-2.0
#include "gpu/monitor.h"

#include "base/text.h"

namespace purlin::gpu {
namespace {

class NvmlMonitor : public Monitor {
 public:
  NvmlMonitor(std::unique_ptr<Nvml> nvml, std::string uuid)
      : nvml_(std::move(nvml)), uuid_(std::move(uuid)) {}

  DeviceState read() override {
    DeviceState state;
    state.sm_clock_mhz = nvml_->sm_clock_mhz(uuid_);
    state.temperature_c = nvml_->temperature_c(uuid_);
    state.power_w = nvml_->power_w(uuid_);
    state.power_limit_w = nvml_->power_limit_w(uuid_);
    state.processes = nvml_->compute_processes(uuid_);
    const std::uint64_t bits = nvml_->limit_bits(uuid_);
    state.limits = Nvml::limit_names(bits);
    state.protects_itself = (bits & Nvml::kProtection) != 0;
    return state;
  }
  Status lock_clocks(unsigned low_mhz, unsigned high_mhz) override {
    return nvml_->lock_clocks(uuid_, low_mhz, high_mhz);
  }
  Status unlock_clocks() override { return nvml_->unlock_clocks(uuid_); }

 private:
  std::unique_ptr<Nvml> nvml_;
  std::string uuid_;
};

}  // namespace

std::unique_ptr<Monitor> make_monitor(std::unique_ptr<Nvml> nvml, std::string uuid) {
  return std::make_unique<NvmlMonitor>(std::move(nvml), std::move(uuid));
}

Result<std::unique_ptr<Monitor>> open_monitor(const std::string& uuid) {
  if (!starts_with(uuid, "GPU-") && !starts_with(uuid, "MIG-"))
    return error(Code::kUnavailable, "only NVIDIA GPUs can be monitored; '{}' is not one", uuid);
  PURLIN_ASSIGN(std::unique_ptr<Nvml> nvml, Nvml::load());
  return make_monitor(std::move(nvml), uuid);
}

Result<std::unique_ptr<Monitor>> open_monitor(const DeviceInfo& device) {
  if (!device.uuid.empty()) return open_monitor(device.uuid);
  return error(Code::kUnavailable, "'{}' has no UUID, so NVML does not know it", device.name);
}

}  // namespace purlin::gpu
