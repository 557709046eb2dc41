// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// Kernels without calls of the host: `within` and `between` are idle times of a step of 1 ms.
Advice device_alone(std::int64_t within, std::int64_t between, bool calls = false) {
  Program program;
  TimelineBuilder& builder = program.builder();
  std::int64_t at = 1'000'000;
  for (int step = 0; step < kSteps; ++step) {
    const std::int64_t begin = at;
    for (int k = 0; k < 4; ++k) {
      const std::uint32_t call = calls ? builder.launch(at - 20'000, 2'000) : kNone;
      builder.kernel("kernel" + std::to_string(k), at, (1'000'000 - within - between) / 4, call);
      builder.profile.kernels[builder.profile.timeline.activities.back().row].duration.add(
          static_cast<double>(1'000'000 - within - between) / 4);
      at += (1'000'000 - between) / 4;
    }
    at = begin + 1'000'000;
    builder.range(RangeKind::kStep, "step", begin, 1'000'000);
  }
  return program.advice();
}

TEST(BetweenSteps, ADeviceThatIdlesBeforeEachStepIsWaitedFor) {
  const Advice advice = device_alone(20'000, 400'000);
  const Intervention* one = find(advice, "remove_syncs");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->saved_share.mid, 0.2, 0.01);
  EXPECT_EQ(one->saved_share.low, 0);
  EXPECT_EQ(one->confidence, "D");
}

TEST(BetweenSteps, SilentWhereTheIdleTimeIsElsewhereOrKnown) {
  EXPECT_EQ(find(device_alone(400'000, 20'000), "remove_syncs"), nullptr);
  EXPECT_EQ(find(device_alone(0, 50'000), "remove_syncs"), nullptr);
  const Advice known = device_alone(20'000, 400'000, true);
  const Intervention* one = find(known, "remove_syncs");
  EXPECT_TRUE(one == nullptr || one->confidence != "D");
}

}  // namespace
}  // namespace purlin::analyze
