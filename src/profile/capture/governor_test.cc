// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/governor.h"

#include <gtest/gtest.h>

namespace purlin::profile::capture {
namespace {

constexpr std::int64_t kMs = 1'000'000, kSecond = 1'000 * kMs;

// Two tiers never have a window at once, and every affordable tier gets its turn.
TEST(Governor, WindowsOfTheOtherTiersAreSpacedByTheirCost) {
  Wishes cheap, dear;
  cheap.first_cost_ns = kMs;
  dear.first_cost_ns = 100 * kMs;
  Governor governor({}, {Wishes{}, cheap, dear}, 0);
  int windows[3] = {};
  int last = Governor::kNone;
  for (std::int64_t now = 1; now < 100 * kSecond;) {
    const Governor::Decision decision = governor.decide(now);
    ASSERT_GT(decision.ask_again_ns, now);
    if (decision.tier != last) {
      if (last > 0) governor.spent(last, last == 1 ? kMs : 100 * kMs);
      ++windows[decision.tier];
    }
    last = decision.tier;
    now = decision.ask_again_ns;
  }
  EXPECT_GT(windows[0], 50);
  EXPECT_GT(windows[1], 40);  // its least period is one second, and its place in each is random
  EXPECT_GE(windows[2], 1);
  EXPECT_LE(windows[2], 3);  // 0.2 of 1 % of 100 s is 200 ms
}

TEST(Governor, ARefusedTierStaysShut) {
  Wishes eager;
  eager.first_cost_ns = 0;
  Governor governor({}, {Wishes{}, eager}, 0);
  governor.refused(1, true);
  for (std::int64_t now = 1; now < 10 * kSecond;) {
    const Governor::Decision decision = governor.decide(now);
    EXPECT_EQ(decision.tier, 0);
    now = decision.ask_again_ns;
  }
}

}  // namespace
}  // namespace purlin::profile::capture
