// SPDX-License-Identifier: Apache-2.0
#include "measure/compiled_limits.h"

#include <gtest/gtest.h>

namespace purlin::measure {
namespace {

LaunchShape block_of(std::uint32_t threads) {
  LaunchShape launch;
  launch.grid = {1, 1, 1};
  launch.block = {threads, 1, 1};
  return launch;
}

TEST(CompiledLimits, RegistersTimesThreadsAreBoundByTheMultiprocessor) {
  DeviceInfo hopper;
  hopper.arch = "sm_90";
  EXPECT_TRUE(check_launchable({255, 0, 0}, block_of(256), hopper).is_ok());
  const Status beyond = check_launchable({255, 0, 0}, block_of(512), hopper);
  EXPECT_EQ(beyond.code(), Code::kInvalid);
  EXPECT_NE(beyond.message().find("registers a block"), std::string::npos) << beyond.message();
  EXPECT_NE(check_launchable({32, 256 << 10, 0}, block_of(32), hopper).message().find("shared"),
            std::string::npos);
}

TEST(CompiledLimits, WhatIsNotKnownBreaksNoLimit) {
  DeviceInfo other;
  other.arch = "gfx942";
  EXPECT_TRUE(check_launchable({255, 0, 0}, block_of(1024), other).is_ok());
  other.arch = "sm_90";
  EXPECT_TRUE(check_launchable({}, block_of(1024), other).is_ok());
  EXPECT_TRUE(check_spills({255, 0, 1 << 20}, std::nullopt).is_ok());
}

TEST(CompiledLimits, ArraysOfTheSourceAreNoSpills) {
  EXPECT_TRUE(check_spills({255, 0, 1024}, 0).is_ok());
  EXPECT_TRUE(check_spills({255, 0, 5024}, 4000).is_ok());
  const Status heavy = check_spills({255, 0, 5025}, 4000);
  EXPECT_EQ(heavy.code(), Code::kInvalid);
  EXPECT_NE(heavy.message().find("5025 bytes"), std::string::npos) << heavy.message();
}

}  // namespace
}  // namespace purlin::measure
