// SPDX-License-Identifier: Apache-2.0
#include "fleet/rate_limiter.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

constexpr std::int64_t kTestSecondNs = 1'000'000'000;

TEST(RateLimiter, LetsABurstThroughAndThenTheRate) {
  RateLimiter limiter;
  const Tokens::Holder holder{"a", "hash", {}, {.requests_per_s = 2}};
  std::int64_t now = kTestSecondNs;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(limiter.take(holder, 0, now), 0) << i;
  EXPECT_DOUBLE_EQ(limiter.take(holder, 0, now), 0.5);
  EXPECT_EQ(limiter.take(holder, 0, now += kTestSecondNs / 2), 0);
  EXPECT_GT(limiter.take(holder, 0, now), 0);
  EXPECT_GT(limiter.take(holder, 0, now - 100 * kTestSecondNs), 0) << "a clock may go back";
}

TEST(RateLimiter, CountsBytesAndEachTokenForItself) {
  RateLimiter limiter;
  const Tokens::Holder one{"a", "1", {}, {.bytes_per_s = 100}}, other{"b", "2", {}, one.limits};
  EXPECT_EQ(limiter.take(one, 600, 1), 0);
  EXPECT_DOUBLE_EQ(limiter.take(one, 600, 1), 2);
  EXPECT_EQ(limiter.take(other, 5000, 1), 0) << "from a full bucket";
  EXPECT_GT(limiter.take(other, 1, 1), 0);
  const Tokens::Holder free{"c", "3", {}, {}};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(limiter.take(free, 1 << 30, 1), 0);
}

}  // namespace
}  // namespace purlin::fleet
