// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/stream_time.h"

#include "profile/capture/sampling/testing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace purlin::profile::capture {
namespace {

DeviceBusy::Work work(std::int64_t start_ns, std::int64_t end_ns, std::uint32_t stream = 7) {
  DeviceBusy::Work result;
  result.stream = {0, 1, stream};
  result.start_ns = start_ns;
  result.end_ns = end_ns;
  return result;
}

StreamTime::Run run(std::int64_t start_ns, std::int64_t end_ns, std::uint32_t stream = 7) {
  StreamTime::Run result;
  EXPECT_TRUE(result.take(work(start_ns, end_ns, stream)));
  return result;
}

TEST(StreamTime, ARunIsOfOneStreamAndOneTime) {
  StreamTime::Run taken = run(kSecond, kSecond + 100);
  EXPECT_TRUE(taken.take(work(kSecond + 50, kSecond + 120)));  // a node next to it
  EXPECT_TRUE(taken.take(work(kSecond + 200, kSecond + 250)));
  EXPECT_TRUE(taken.take(work(0, 1'000)));  // without a start
  EXPECT_EQ(taken.busy_ns, 170);
  EXPECT_EQ(taken.pieces, 3);
  EXPECT_FALSE(taken.take(work(kSecond + 300, kSecond + 310, 8)));
  EXPECT_FALSE(taken.take(work(2 * kSecond, 2 * kSecond + 10)));
  EXPECT_FALSE(taken.take(work(kSecond - 10, kSecond)));  // a delayed record
}

TEST(StreamTime, AStreamRunsNoLongerThanThereWasTime) {
  StreamTime time;
  time.add(run(kSecond, kSecond + 200 * kMs), 1);
  EXPECT_TRUE(std::isinf(time.most(2 * kSecond, true)));  // nothing to weigh
  time.add(run(2 * kSecond, 2 * kSecond + 100 * kMs), 0);
  EXPECT_NEAR(time.most(3 * kSecond, true), 18, 1e-9);
  EXPECT_GT(time.most(3 * kSecond, false), 1000);  // a queue of such kernels may have to run
  time.settle(20);
  EXPECT_NEAR(time.beyond_ns(3 * kSecond), 200e6, 1);
  EXPECT_EQ(time.beyond_ns(4 * kSecond), 0);
  time.add(run(3 * kSecond, 3 * kSecond + 10 * kMs), 0);
  EXPECT_EQ(time.most(3 * kSecond + 10 * kMs, true), 1);  // each is there at least once
}

TEST(StreamTime, TheFullestStreamDecides) {
  StreamTime time;
  time.add(run(kSecond, kSecond + kMs, 1), 0);
  time.add(run(kSecond, kSecond + 10 * kMs, 2), 0);
  EXPECT_NEAR(time.most(2 * kSecond, true), 100, 1e-9);
  EXPECT_EQ(time.beyond_ns(2 * kSecond), 0);
}

TEST(StreamTime, LateAndOverlappingWorkCountsOnce) {
  StreamTime time;
  time.add(run(kSecond, kSecond + 100 * kMs), 1);
  time.add(run(kSecond + 50 * kMs, kSecond + 150 * kMs), 1);
  time.add(run(kSecond + 20 * kMs, kSecond + 60 * kMs), 1);
  time.add(run(2 * kSecond, 2 * kSecond + 10 * kMs), 0);
  EXPECT_NEAR(time.most(2 * kSecond + 10 * kMs, true), (1010 - 150) / 10.0, 1e-9);
}

TEST(StreamTime, MoreStreamsThanItKnowsHaveNoBound) {
  StreamTime time;
  for (std::uint32_t stream = 0; stream <= StreamTime::kMaxStreams; ++stream)
    time.add(run(kSecond, kSecond + kMs, stream), 1);
  time.add(run(kSecond + kMs, kSecond + 2 * kMs, StreamTime::kMaxStreams), 0);
  EXPECT_TRUE(std::isinf(time.most(kSecond + 2 * kMs, true)));
}

// Windows of a stream that is busy for a part of its time, with weights that are wrong by a factor
// of up to four. The sum is what the wall time allows.
TEST(StreamTime, NoSumOfWindowsIsBeyondTheWallTime) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto between = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random);
    };
    const double busy_share = between(0.1, 1);
    StreamTime time;
    double sum = 0;
    std::int64_t now = kSecond;
    const int windows = 1 + static_cast<int>(random() % 40);
    for (int window = 0; window < windows; ++window) {
      const std::int64_t open = now, period = static_cast<std::int64_t>(between(20, 300)) * kMs;
      const std::int64_t length = period / 10;
      double recorded = 0;
      for (std::int64_t at = open; at < open + length; at += kMs) {
        const auto busy = static_cast<std::int64_t>(busy_share * kMs);
        time.add(run(at, at + busy), 0);
        recorded += static_cast<double>(busy);
      }
      now += period;
      const double weight = std::min(10 * between(0.5, 4), time.most(now, true));
      time.settle(weight);
      sum += weight * recorded;
      EXPECT_LE(sum, static_cast<double>(now - kSecond) * (1 + 1e-9)) << seed;
    }
    EXPECT_EQ(time.beyond_ns(now), 0);
  }
}

}  // namespace
}  // namespace purlin::profile::capture
