// SPDX-License-Identifier: Apache-2.0
#include "cli/capability_table.h"

#include <gtest/gtest.h>

namespace purlin::cli {
namespace {

std::vector<Capability> some() {
  return {{"cuda_driver", "CUDA driver", CapabilityState::kOk, "libcuda.so.1", ""},
          {"gpu_counters", "GPU counters", CapabilityState::kDegraded, "admins only", "be root"},
          {"cupti", "CUPTI", CapabilityState::kMissing, "not found", "install it"}};
}

TEST(CapabilityTable, AsJson) {
  EXPECT_EQ(
      to_json(some()).dump(),
      R"([)"
      R"({"id":"cuda_driver","title":"CUDA driver","state":"ok","evidence":"libcuda.so.1","fix":null},)"
      R"({"id":"gpu_counters","title":"GPU counters","state":"degraded","evidence":"admins only","fix":"be root"},)"
      R"({"id":"cupti","title":"CUPTI","state":"missing","evidence":"not found","fix":"install it"}])");
}

TEST(CapabilityTable, AsText) {
  EXPECT_EQ(render_capabilities(some(), Terminal(false, false, true, 100)),
            "ok        CUDA driver   libcuda.so.1\n"
            "degraded  GPU counters  admins only\n"
            "                        fix: be root\n"
            "missing   CUPTI         not found\n"
            "                        fix: install it\n");
}

TEST(CapabilityTable, AnAdviceIsPrintedOnce) {
  std::vector<Capability> all = some();
  all.push_back({"clocks", "Clocks", CapabilityState::kMissing, "not readable", "install it"});
  const std::string text = render_capabilities(all, Terminal(false, false, true, 100));
  EXPECT_EQ(text.find("install it"), text.rfind("install it"));
  EXPECT_NE(text.find("not readable; see CUPTI\n"), std::string::npos);
}

}  // namespace
}  // namespace purlin::cli
