// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/processor_wait.h"

#include "profile/capture/sampling/testing.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace purlin::profile::capture {
namespace {

class ProcessorWaitTest : public testing::Test {
 protected:
  void waited(std::int64_t ns) { std::ofstream(path_) << "123456 " << ns << " 78\n"; }
  std::string path_ = testing::TempDir() + "/processor_wait_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name();
  ProcessorWait wait_{path_};
};

TEST_F(ProcessorWaitTest, AQuietMachineHasNoDifference) {
  waited(0);
  wait_.opened(1'000);
  wait_.closed(11'000);
  EXPECT_EQ(wait_.take_difference(101'000), 0);
  EXPECT_EQ(wait_.take_difference(201'000), 0);  // no window
}

// In the window of 10 ms it waited for 8 ms, in all 100 ms for 50.
TEST_F(ProcessorWaitTest, MoreWaitInsideMeansThatMoreWasLaunchedOutside) {
  waited(5 * kMs);
  wait_.opened(kMs);
  waited(13 * kMs);
  wait_.closed(11 * kMs);
  waited(55 * kMs);
  EXPECT_NEAR(wait_.take_difference(101 * kMs), 0.5 / 0.2 - 1, 1e-9);
  // From then on again.
  wait_.opened(111 * kMs);
  wait_.closed(121 * kMs);
  waited(95 * kMs);
  EXPECT_NEAR(wait_.take_difference(201 * kMs), 0.6 - 1, 1e-9);
}

TEST_F(ProcessorWaitTest, WhatLinuxDoesNotTellIsNoDifference) {
  wait_.opened(1'000);
  wait_.closed(11'000);
  EXPECT_EQ(wait_.take_difference(101'000), 0);
  std::ofstream(path_) << "nonsense\n";
  wait_.opened(1'000);
  wait_.closed(11'000);
  EXPECT_EQ(wait_.take_difference(101'000), 0);
}

TEST_F(ProcessorWaitTest, AWaitThatIsToldOfLateIsBounded) {
  waited(0);
  wait_.opened(1'000);
  waited(kSecond);
  wait_.closed(11'000);
  EXPECT_NEAR(wait_.take_difference(12'000), 0, 1e-9);
}

}  // namespace
}  // namespace purlin::profile::capture
