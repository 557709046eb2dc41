// SPDX-License-Identifier: Apache-2.0
#include "gpu/monitor.h"

#include <gtest/gtest.h>

#include <cstring>

namespace purlin::gpu {
namespace {

// A driver in a table. Plain functions, as C has it, so its state is global to this file.
struct FakeNvml {
  unsigned clock = 1980, temperature = 45, power_mw = 350000, limit_mw = 700000;
  unsigned long long reasons = 0;
  std::vector<unsigned> processes;
  unsigned low = 0, high = 0;
  unsigned long long energy_mj = 1234567890123;
  int energy_code = 0;
  int locks = 0, resets = 0, lock_code = 0, shutdowns = 0;
};
FakeNvml fake_nvml;      // NOLINT: see above
int monitor_handle = 0;  // NOLINT

NvmlTable table() {
  NvmlTable functions;
  functions.init = [] { return 0; };
  functions.shutdown = [] { return ++fake_nvml.shutdowns, 0; };
  functions.driver_version = [](char* text, unsigned) { return std::strcpy(text, "580.1"), 0; };
  functions.by_pci = [](const char*, void**) { return 2; };
  functions.by_uuid = [](const char* uuid, void** device) {
    *device = &monitor_handle;
    return std::strcmp(uuid, "GPU-1") == 0 ? 0 : 6;
  };
  functions.clock_info = [](void*, int, unsigned* mhz) { return *mhz = fake_nvml.clock, 0; };
  functions.clock_reasons = [](void*, unsigned long long* bits) {
    return *bits = fake_nvml.reasons, 0;
  };
  functions.temperature = [](void*, int, unsigned* celsius) {
    return *celsius = fake_nvml.temperature, 0;
  };
  functions.power = [](void*, unsigned* mw) { return *mw = fake_nvml.power_mw, 0; };
  functions.power_limit = [](void*, unsigned* mw) { return *mw = fake_nvml.limit_mw, 0; };
  functions.processes = [](void*, unsigned* count, NvmlTable::ProcessInfo* infos) {
    const unsigned room = *count;
    *count = static_cast<unsigned>(fake_nvml.processes.size());
    if (room < *count) return 7;
    for (unsigned i = 0; i < *count; ++i) infos[i].pid = fake_nvml.processes[i];
    return 0;
  };
  functions.lock_clocks = [](void*, unsigned low, unsigned high) {
    fake_nvml.low = low, fake_nvml.high = high;
    return ++fake_nvml.locks, fake_nvml.lock_code;
  };
  functions.reset_clocks = [](void*) { return ++fake_nvml.resets, 0; };
  functions.energy = [](void*, unsigned long long* mj) {
    *mj = fake_nvml.energy_mj;
    return fake_nvml.energy_code;
  };
  return functions;
}

std::unique_ptr<Monitor> monitor(const NvmlTable& functions = table(),
                                 const std::string& uuid = "GPU-1") {
  return make_monitor(Nvml::over(functions).value(), uuid);
}

class MonitorTest : public ::testing::Test {
 protected:
  void SetUp() override { fake_nvml = {}; }
};

TEST_F(MonitorTest, ReadsClocksHeatPowerAndProcesses) {
  fake_nvml.processes.assign(300, 12);  // more than it asks room for at first
  const DeviceState state = monitor()->read();
  EXPECT_EQ(state.sm_clock_mhz, 1980);
  EXPECT_EQ(state.temperature_c, 45);
  EXPECT_EQ(state.power_w, 350);
  EXPECT_EQ(state.power_limit_w, 700);
  ASSERT_TRUE(state.processes.has_value());
  EXPECT_EQ(state.processes->size(), 300u);
  EXPECT_TRUE(state.limits.empty());
  EXPECT_EQ(fake_nvml.shutdowns, 1);
}

TEST_F(MonitorTest, DistinguishesProtectionFromAPowerCap) {
  fake_nvml.reasons = 0x1 | 0x4;  // idle bits are no limit
  EXPECT_EQ(monitor()->read().limits, std::vector<std::string>{"power cap"});
  EXPECT_FALSE(monitor()->read().protects_itself);
  for (const unsigned long long bit : {0x8ull, 0x20ull, 0x40ull, 0x80ull}) {
    fake_nvml.reasons = bit;
    EXPECT_TRUE(monitor()->read().protects_itself) << bit;
  }
}

TEST_F(MonitorTest, OldDriversKnowLess) {
  NvmlTable old = table();
  old.temperature = nullptr;
  old.power = old.power_limit = nullptr;
  old.processes = nullptr;
  old.clock_reasons = nullptr;
  old.lock_clocks = nullptr;
  const DeviceState state = monitor(old)->read();
  EXPECT_EQ(state.temperature_c, 0);
  EXPECT_FALSE(state.processes.has_value());
  EXPECT_EQ(monitor(old)->lock_clocks(0, 0).code(), Code::kUnavailable);
  EXPECT_EQ(monitor(table(), "GPU-2")->read().sm_clock_mhz, 0);
}

TEST_F(MonitorTest, CountsEnergyOrSaysWhyNot) {
  EXPECT_EQ(*Nvml::over(table()).value()->energy_mj("GPU-1"), 1234567890123.0);
  fake_nvml.energy_code = 3;
  const Status refused = Nvml::over(table()).value()->energy_mj("GPU-1").status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_NE(refused.message().find("does not support it; counting takes a Volta"),
            std::string::npos)
      << refused.message();
  NvmlTable old = table();
  old.energy = nullptr;
  EXPECT_NE(Nvml::over(old).value()->energy_mj("GPU-1").status().message().find("update it"),
            std::string::npos);
  EXPECT_EQ(Nvml::over(table()).value()->energy_mj("GPU-2").status().code(), Code::kUnavailable);
}

TEST_F(MonitorTest, LocksAndSaysWhyItMayNot) {
  EXPECT_TRUE(monitor()->lock_clocks(1500, 1500).is_ok());
  EXPECT_EQ(fake_nvml.low, 1500u);
  EXPECT_TRUE(monitor()->lock_clocks(0, 0).is_ok());
  EXPECT_EQ(fake_nvml.low, 0xFFFFFF01u);  // the board's base clock, as NVML names it
  EXPECT_TRUE(monitor()->unlock_clocks().is_ok());
  EXPECT_EQ(fake_nvml.resets, 1);
  fake_nvml.lock_code = 4;
  EXPECT_NE(monitor()->lock_clocks(1500, 1500).message().find("root"), std::string::npos);
}

TEST_F(MonitorTest, OnlyGpusThatNvmlKnows) {
  DeviceInfo cpu;
  cpu.name = "cpu";
  EXPECT_EQ(open_monitor(cpu).status().code(), Code::kUnavailable);
  cpu.uuid = "something";
  EXPECT_EQ(open_monitor(cpu).status().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace purlin::gpu
