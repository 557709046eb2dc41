// SPDX-License-Identifier: Apache-2.0
// Against a fake of CUPTI's functions.
#include "profile/capture/cuda/activity/tier.h"

#include "profile/capture/cuda/activity/records_for_test.h"

#include <gtest/gtest.h>

#include <vector>

namespace purlin::profile::capture::cuda {
namespace {

std::vector<int> asked;  // for launch times

Cupti launch_time_functions() {
  asked.clear();
  Cupti cupti = record_functions();
  cupti.enable = [](CUpti_ActivityKind) { return CUPTI_SUCCESS; };
  cupti.disable = [](CUpti_ActivityKind) { return CUPTI_SUCCESS; };
  cupti.flush_all = [](std::uint32_t) { return CUPTI_SUCCESS; };
  cupti.latency_timestamps = [](std::uint8_t on) {
    asked.push_back(on);
    return CUPTI_SUCCESS;
  };
  return cupti;
}

class ActivityTierTest : public testing::Test {
 protected:
  void deliver(std::size_t kernels) {
    rig_.aggregator.begin_period(1, true, false);
    const std::vector<KernelRecord> records(1000, kernel_record("k", wall_ns(), 10));
    for (std::size_t i = 0; i < kernels / records.size(); ++i) rig_.deliver(records);
  }

  AggregatorRig rig_{true, launch_time_functions()};
  ActivityTier tier_{rig_.cupti, rig_.session.recorder(), rig_.aggregator, rig_.attribution, {}};
};

TEST_F(ActivityTierTest, LaunchTimesEndLongBeforeCuptisBuffersAreFull) {
  tier_.open({});
  deliver(50'000);
  tier_.collect(false);
  EXPECT_EQ(asked, (std::vector<int>{1}));
  deliver(15'000);
  tier_.collect(false);
  EXPECT_EQ(asked, (std::vector<int>{1, 0}));
  tier_.close();
  tier_.open({});  // a later window has none
  tier_.collect(false);
  EXPECT_EQ(asked, (std::vector<int>{1, 0}));
}

TEST_F(ActivityTierTest, AnotherClientRecordsWithoutLaunchTimes) {
  tier_.open({});
  tier_.leave();
  EXPECT_EQ(asked, (std::vector<int>{1, 0}));
  tier_.yield();
  EXPECT_EQ(asked, (std::vector<int>{1, 0}));
}

}  // namespace
}  // namespace purlin::profile::capture::cuda
