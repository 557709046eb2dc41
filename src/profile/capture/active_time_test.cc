// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/active_time.h"

#include <gtest/gtest.h>

namespace purlin::profile::capture {
namespace {

constexpr std::int64_t kPerMs = 1'000'000;

void launch_at_ms(ActiveTime& active, std::int64_t ms) {
  active.add(ActiveTime::slot_of(ms * kPerMs));
}

TEST(ActiveTime, RestDoesNotCount) {
  ActiveTime active;
  for (std::int64_t ms = 0; ms < 40; ++ms) launch_at_ms(active, ms);
  for (std::int64_t ms = 5000; ms < 5300; ++ms) launch_at_ms(active, ms);
  EXPECT_EQ(active.take(), 340 * kPerMs);
  EXPECT_EQ(active.take(), 0);
}

TEST(ActiveTime, InAnyOrderAndNoneTwice) {
  ActiveTime active;
  for (std::int64_t ms : {100, 10, 90, 15, 101}) launch_at_ms(active, ms);
  EXPECT_EQ(active.take(), 3 * ActiveTime::kSlotNs);
  for (std::int64_t ms : {105, 19, 120}) launch_at_ms(active, ms);  // two of them late
  EXPECT_EQ(active.take(), ActiveTime::kSlotNs);
}

TEST(ActiveTime, OfAMinuteAgoNothingIsKnown) {
  ActiveTime active;
  for (std::int64_t second = 0; second < 10'000; ++second) launch_at_ms(active, second * 1000);
  EXPECT_EQ(active.take(), 10'000 * ActiveTime::kSlotNs);
  launch_at_ms(active, 9'999'000);
  EXPECT_EQ(active.take(), 0);
}

}  // namespace
}  // namespace purlin::profile::capture
