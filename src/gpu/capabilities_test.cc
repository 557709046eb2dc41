// SPDX-License-Identifier: Apache-2.0
#include "gpu/capabilities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace purlin::gpu {
namespace {

TEST(Capabilities, CountersFollowTheDriversParameterAndTheUser) {
  constexpr std::uint64_t kAdmin = std::uint64_t{1} << 21;
  const std::string open = "EnableMSI: 1\nRmProfilingAdminOnly: 0\nOther: 1\n";
  const std::string closed = "EnableMSI: 1\nRmProfilingAdminOnly: 1\nOther: 0\n";
  EXPECT_EQ(examine_counters(open, 0).state, CapabilityState::kOk);
  EXPECT_EQ(examine_counters(closed, kAdmin).state, CapabilityState::kOk);
  const Capability refused = examine_counters(closed, 0);
  EXPECT_EQ(refused.state, CapabilityState::kDegraded);
  EXPECT_NE(refused.fix.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
  EXPECT_EQ(examine_counters("", kAdmin).state, CapabilityState::kMissing);
}

TEST(Capabilities, ThisMachineIsExaminedCompletely) {
  DeviceInfo cpu;
  cpu.id = "opencl:0";
  cpu.backend = "opencl";
  cpu.kind = "cpu";
  cpu.name = "toy";
  const auto all = examine_devices({cpu}, {"cuda: no device; add one"});
  std::set<std::string> ids;
  for (const Capability& capability : all) {
    EXPECT_TRUE(ids.insert(capability.id).second) << capability.id << " occurs twice";
    EXPECT_NE(capability.evidence, "") << capability.id;
    EXPECT_EQ(capability.fix.empty(), capability.state == CapabilityState::kOk) << capability.id;
  }
  EXPECT_EQ(ids.size(), 10u);
  const auto named = [&all](std::string_view id) {
    return *std::find_if(all.begin(), all.end(),
                         [id](const Capability& capability) { return capability.id == id; });
  };
  // Without a driver, the driver's own advice is the one to follow.
  const Capability driver = named("cuda_driver");
  const bool works = driver.state == CapabilityState::kOk;
  EXPECT_EQ(named("cuda_devices").fix, works ? "no device; add one" : driver.fix);
  if (!works) {
    EXPECT_EQ(named("clocks").fix, driver.fix);
  }
  EXPECT_EQ(named("opencl_devices").state, CapabilityState::kOk);
}

}  // namespace
}  // namespace purlin::gpu
