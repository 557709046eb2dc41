// SPDX-License-Identifier: Apache-2.0
#include "measure/kernel_facts.h"

#include <gtest/gtest.h>

namespace purlin::measure {
namespace {

TEST(KernelFacts, AreWhatTheCompilerAndTheGridSay) {
  gpu::Kernel kernel;
  kernel.registers = 128;
  kernel.static_shared_bytes = 8 << 10;
  kernel.local_bytes = 16;
  LaunchShape launch;
  launch.grid = {264, 1, 1};
  launch.block = {256, 1, 1};
  launch.dynamic_shared_bytes = 4 << 10;
  DeviceInfo device;
  device.arch = "sm_90";
  device.compute_units = 132;
  const auto facts = kernel_facts(kernel, {"gemm", std::string(1000, 'x'), "", 0}, launch, device);
  const std::map<std::string, double> wanted = {
      {"blocks", 264},         {"code_bytes", 1000}, {"estimated_occupancy", 0.25},
      {"local_bytes", 16},     {"occupancy", 0.25},  {"registers", 128},
      {"shared_bytes", 12288}, {"threads", 256},     {"waves", 1}};
  EXPECT_EQ(facts, wanted);
}

TEST(KernelFacts, LeaveOutUnreportedFacts) {
  LaunchShape launch;
  launch.grid = {4, 2, 1};
  launch.block = {32, 1, 1};
  const std::map<std::string, double> wanted = {{"blocks", 8}, {"code_bytes", 3}, {"threads", 32}};
  EXPECT_EQ(kernel_facts(gpu::Kernel{}, {"k", "abc", "", 0}, launch, DeviceInfo{}), wanted);
}

}  // namespace
}  // namespace purlin::measure
