// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/sampling/work_rates.h"

#include <gtest/gtest.h>

namespace purlin::profile::capture {
namespace {

constexpr double kPerSecond = 1e9;

// Launches one after the other from a time on.
void loop(WorkRates& rates, double from_s, double seconds, double launches_per_s,
          double nodes = 0) {
  for (double at = 0; at < seconds; at += 1 / launches_per_s)
    rates.add(WorkRates::slot_of(static_cast<std::int64_t>((from_s + at) * 1e9)), {1, nodes});
}

TEST(WorkRates, AreThoseOfALoopThatComesAfterALongStart) {
  WorkRates rates;
  EXPECT_EQ(rates.per_ns().launches, 0);
  loop(rates, 0, 5, 100);
  loop(rates, 5, 0.3, 60'000);
  EXPECT_NEAR(rates.per_ns().launches * kPerSecond, 60'000, 2500);
  EXPECT_EQ(rates.per_ns().nodes, 0);
}

TEST(WorkRates, OfGraphsTheirNodes) {
  WorkRates rates;
  loop(rates, 0, 0.5, 400, 850);
  EXPECT_NEAR(rates.per_ns().nodes * kPerSecond, 400 * 850, 20'000);
  EXPECT_NEAR(rates.per_ns().launches * kPerSecond, 400, 25);
}

// A thread's buffer may come seconds after another's of the same time.
TEST(WorkRates, InAnyOrderOfThreads) {
  WorkRates one, other;
  loop(one, 0, 1, 50'000), loop(one, 0, 1, 50'000);
  for (int slot = 9; slot >= 0; --slot) loop(other, slot * 0.1, 0.1, 50'000);
  loop(other, 0, 1, 50'000);
  EXPECT_NEAR(one.per_ns().launches * kPerSecond, 100'000, 2000);
  EXPECT_NEAR(other.per_ns().launches, one.per_ns().launches, 1e-6);
}

TEST(WorkRates, TheOldIsForgotten) {
  WorkRates rates;
  loop(rates, 1000, 1, 90'000);
  loop(rates, 0, 20, 10'000);  // the clock was put back
  EXPECT_NEAR(rates.per_ns().launches * kPerSecond, 10'000, 500);
}

}  // namespace
}  // namespace purlin::profile::capture
