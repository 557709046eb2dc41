// SPDX-License-Identifier: Apache-2.0
#include "backlog/profile_tasks.h"

#include "cache/testing.h"

#include <gtest/gtest.h>

namespace purlin::backlog {
namespace {

// A capture of OpenCL reports names and times, and no problem shapes.
TEST(ProfileTasks, AnOpenClKernelBecomesATaskByTheEntryOfItsSpec) {
  cache::TemporaryDirectory folder;
  const cache::Store store = *cache::Store::open(folder.path());
  KernelSpec spec;
  spec.name = spec.op = "blur";
  spec.file = "/kernels/blur.toml";
  spec.entry = "blur_rows";
  spec.sources["opencl"] = {};
  spec.problem.set("N", 4096);
  DeviceInfo device;
  device.backend = "opencl";
  device.name = "A CPU";
  ProfiledKernel known;
  known.label = known.full = known.brief = "blur_rows";
  known.device = device.name;
  known.launches = 10;
  known.total_ns = 1e6;
  ProfiledKernel unknown = known;
  unknown.label = unknown.full = unknown.brief = "other";
  const std::vector<ProfiledKernel> kernels = {known, unknown};
  const std::vector<DeviceInfo> devices = {device};
  const std::vector<KernelSpec> specs = {spec};
  const ProfileTasks made = profile_tasks(kernels, devices, specs, store);
  ASSERT_EQ(made.tasks.size(), 1u);
  EXPECT_EQ(made.tasks[0].key.kernel, "blur");
  EXPECT_EQ(made.tasks[0].key.shape, "N=4096");
  EXPECT_EQ(made.tasks[0].launches, 10u);
  EXPECT_NE(made.tasks[0].reason.find("none was recorded"), std::string::npos);
  ASSERT_EQ(made.left_out.size(), 1u);
  EXPECT_NE(made.left_out[0].find("no spec has the kernel 'other'"), std::string::npos)
      << made.left_out[0];
}

}  // namespace
}  // namespace purlin::backlog
