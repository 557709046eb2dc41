// SPDX-License-Identifier: Apache-2.0
#include "cli/machine_limits.h"

#include "base/files.h"

#include <gtest/gtest.h>

namespace purlin::cli {
namespace {

class MachineLimitsTest : public testing::Test {
 protected:
  void SetUp() override { root_ = make_temporary_directory("purlin-limits").value(); }
  void TearDown() override { ASSERT_TRUE(remove_tree(root_).is_ok()); }
  void put(const std::string& name, const std::string& text) {
    const std::string path = join_path(root_, name);
    ASSERT_TRUE(make_directories(parent_path(path)).is_ok());
    ASSERT_TRUE(write_atomic(path, text).is_ok());
  }
  std::string root_;
};

TEST_F(MachineLimitsTest, AreReadFromEitherVersion) {
  put("sys/fs/cgroup/memory.max", "536870912\n");
  put("sys/fs/cgroup/cpu.max", "50000 100000\n");
  put("sys/fs/cgroup/pids.max", "max\n");
  put(".dockerenv", "");
  const MachineLimits limits = read_limits(root_);
  EXPECT_TRUE(limits.container);
  EXPECT_EQ(limits.memory_bytes, 536870912u);
  EXPECT_DOUBLE_EQ(limits.cores.value_or(0), 0.5);
  EXPECT_FALSE(limits.processes);
  const Capability shown = examine_limits(limits);
  EXPECT_EQ(shown.state, CapabilityState::kDegraded);
  EXPECT_NE(shown.evidence.find("container: 512.0 MiB of memory, 0.5 cores"), std::string::npos)
      << shown.evidence;
  EXPECT_NE(shown.fix.find("--memory 4g --cpus 2"), std::string::npos) << shown.fix;
}

TEST_F(MachineLimitsTest, OfVersion1) {
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/pids/pids.max", "64\n");
  const MachineLimits limits = read_limits(root_);
  EXPECT_FALSE(limits.memory_bytes);
  EXPECT_FALSE(limits.cores);
  EXPECT_EQ(limits.processes, 64u);
}

TEST_F(MachineLimitsTest, WithoutOnesAreFine) {
  MachineLimits limits = read_limits(root_);
  limits.open_files.reset();
  limits.container = false;
  const Capability shown = examine_limits(limits);
  EXPECT_EQ(shown.state, CapabilityState::kOk);
  EXPECT_EQ(shown.evidence, "none");
  EXPECT_EQ(shown.fix, "");
  put("sys/fs/cgroup/cpu.max", "garbage");
  put("sys/fs/cgroup/memory.max", "-5");
  EXPECT_FALSE(read_limits(root_).cores);
  EXPECT_FALSE(read_limits(root_).memory_bytes);
}

}  // namespace
}  // namespace purlin::cli
