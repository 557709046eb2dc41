// SPDX-License-Identifier: Apache-2.0
#include "cli/capabilities.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace purlin::cli {
namespace {

std::vector<Capability> some() {
  return {{"cuda_driver", "CUDA driver", CapabilityState::kOk, "libcuda.so.1", ""},
          {"gpu_counters", "GPU counters", CapabilityState::kDegraded, "admins only", "be root"},
          {"cupti", "CUPTI", CapabilityState::kMissing, "not found", "install it"}};
}

TEST(Capabilities, AsJson) {
  Json document = Json::object();
  add_capabilities(document, some());
  EXPECT_EQ(
      document.dump(),
      R"({"capabilities":[)"
      R"({"id":"cuda_driver","title":"CUDA driver","state":"ok","evidence":"libcuda.so.1","fix":null},)"
      R"({"id":"gpu_counters","title":"GPU counters","state":"degraded","evidence":"admins only","fix":"be root"},)"
      R"({"id":"cupti","title":"CUPTI","state":"missing","evidence":"not found","fix":"install it"}]})");
}

TEST(Capabilities, AsText) {
  EXPECT_EQ(render_capabilities(some(), Terminal(false, false, true, 100)),
            "ok        CUDA driver   libcuda.so.1\n"
            "degraded  GPU counters  admins only\n"
            "                        fix: be root\n"
            "missing   CUPTI         not found\n"
            "                        fix: install it\n");
}

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
  const auto all = examine_machine({cpu}, {"cuda: no driver; install one"});
  std::set<std::string> ids;
  for (const Capability& capability : all) {
    EXPECT_TRUE(ids.insert(capability.id).second) << capability.id << " is there twice";
    EXPECT_NE(capability.evidence, "") << capability.id;
    if (capability.state == CapabilityState::kOk)
      EXPECT_EQ(capability.fix, "") << capability.id;
    else
      EXPECT_NE(capability.fix, "") << capability.id;
  }
  EXPECT_EQ(ids.size(), 13u);
  const auto named = [&all](std::string_view id) {
    return *std::find_if(all.begin(), all.end(),
                         [id](const Capability& capability) { return capability.id == id; });
  };
  EXPECT_EQ(named("cuda_devices").fix, "no driver; install one");
  EXPECT_EQ(named("opencl_devices").state, CapabilityState::kOk);
}

}  // namespace
}  // namespace purlin::cli
