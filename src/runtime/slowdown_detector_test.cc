// SPDX-License-Identifier: Apache-2.0
// bench/shadow_quality has the figures on recorded times; here is what must hold exactly.
#include "runtime/slowdown_detector.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin::runtime {
namespace {

// Sum of uniforms: bell-shaped, deviation 1.
double noise(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

int samples_until_alarm(double ratio, double deviation, std::uint64_t seed, int most) {
  SlowdownDetector test;
  Random random(seed);
  for (int i = 1; i <= most; ++i)
    if (test.add(std::log(ratio) + deviation * noise(random))) return i;
  return most + 1;
}

TEST(SlowdownDetector, FindsFivePercentSoon) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_LE(samples_until_alarm(1.05, 0.005, seed, 1000), 60) << seed;
    EXPECT_LE(samples_until_alarm(1.05, 0.03, seed, 1000), 200) << seed;
  }
}

TEST(SlowdownDetector, IsSilentForEqualsAndForTheMargin) {
  for (const double ratio : {1.0, 1.0075})
    for (std::uint64_t seed = 1; seed <= 10; ++seed)
      EXPECT_GT(samples_until_alarm(ratio, 0.05, seed, 5000), 5000) << ratio << " " << seed;
}

// What was good for long does not hide what becomes bad.
TEST(SlowdownDetector, FindsALateSlowdown) {
  SlowdownDetector test;
  Random random(3);
  for (int i = 0; i < 20'000; ++i) ASSERT_FALSE(test.add(0.02 * noise(random) - 0.1));
  int samples = 1;
  while (!test.add(std::log(1.05) + 0.02 * noise(random))) ASSERT_LT(++samples, 400);
  EXPECT_LE(samples, 250);
}

TEST(SlowdownDetector, NeverDecidesOnAFewSamples) {
  SlowdownDetector test;
  for (int i = 0; i < 14; ++i) EXPECT_FALSE(test.add(100.0)) << i;
}

TEST(SlowdownDetector, IgnoresWhatIsNoTime) {
  SlowdownDetector test;
  EXPECT_FALSE(test.add(std::nan("")));
  EXPECT_FALSE(test.add(INFINITY));
  EXPECT_EQ(test.samples(), 0u);
  EXPECT_EQ(test.ratio(), 1.0);
  test.add(std::log(1.5));
  EXPECT_NEAR(test.ratio(), 1.5, 1e-12);
}

TEST(SlowdownDetector, StartsAnewAfterAnAlarm) {
  SlowdownDetector test;
  int samples = 0;
  while (!test.add(0.5)) ++samples;
  EXPECT_FALSE(test.add(0.5));
}

}  // namespace
}  // namespace purlin::runtime
