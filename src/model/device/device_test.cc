// SPDX-License-Identifier: Apache-2.0
#include "model/device/device.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

DeviceInfo full_device() {
  DeviceInfo info;
  info.id = "cuda:0";
  info.backend = "cuda";
  info.kind = "gpu";
  info.name = "NVIDIA H200";
  info.vendor = "NVIDIA";
  info.arch = "sm_90";
  info.uuid = "GPU-0";
  info.driver = "580.159.04";
  info.toolkit = "NVRTC 13.0";
  info.compute_units = 132;
  info.clock_mhz = 1980.5;
  info.memory_clock_mhz = 3201;
  info.memory_bus_bits = 6144;
  info.memory_bytes = 150'000'000'000;
  info.l2_bytes = 62'914'560;
  info.shared_memory_per_block = 232448;
  info.shared_memory_per_unit = 233472;
  info.registers_per_block = 65536;
  info.registers_per_unit = 65535;
  info.warp_size = 32;
  info.max_threads_per_block = 1024;
  info.max_threads_per_unit = 2048;
  info.max_block = {1024, 1023, 64};
  info.max_grid = {2147483647, 65535, 65534};
  return info;
}

TEST(DeviceInfo, EveryFieldSurvivesJson) {
  const Json json = to_json(full_device());
  EXPECT_EQ(json.size(), 24u);  // a new field belongs in full_device() above too
  auto text = Json::parse(json.dump());
  ASSERT_TRUE(text.is_ok());
  EXPECT_EQ(to_json(device_from_json(*text)), json);
  EXPECT_EQ(device_from_json(*text).max_grid[2], 65534);
  EXPECT_EQ(device_from_json(*text).memory_bytes, 150'000'000'000u);
}

TEST(DeviceInfo, UnknownFactsAreLeftOut) {
  DeviceInfo info;
  info.id = "fake:0";
  EXPECT_EQ(to_json(info).dump(), R"({"id":"fake:0"})");
}

TEST(DeviceInfo, ReadsLenientlyFromForeignDocuments) {
  auto json = Json::parse(R"({"name": 7, "max_block": [1], "compute_units": "many", "more": 1})");
  ASSERT_TRUE(json.is_ok());
  const DeviceInfo info = device_from_json(*json);
  EXPECT_EQ(info.name, "");
  EXPECT_EQ(info.compute_units, 0);
  EXPECT_EQ(info.max_block[0], 1);
  EXPECT_EQ(info.max_block[1], 0);
}

TEST(Environment, SurvivesJson) {
  Environment environment = host_environment();
  environment.devices.push_back(full_device());
  environment.build = "v1.2-3-gabc";
  const Json json = to_json(environment);
  EXPECT_EQ(to_json(environment_from_json(json)), json);
  EXPECT_EQ(json["devices"].items()[0]["name"].as_string(), "NVIDIA H200");
}

TEST(Environment, HostFactsAreFound) {
  const Environment environment = host_environment();
  EXPECT_NE(environment.host_os, "");
  EXPECT_NE(environment.host_kernel, "");
  EXPECT_NE(environment.host_cpu, "");
  EXPECT_GE(environment.host_cpus, 1);
  EXPECT_EQ(environment.recorded_at.back(), 'Z');
  EXPECT_TRUE(environment.devices.empty());
}

}  // namespace
}  // namespace purlin
