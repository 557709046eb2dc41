// SPDX-License-Identifier: Apache-2.0
#include "measure/race.h"

#include <gtest/gtest.h>

namespace purlin::measure {
namespace {

std::vector<Sample> samples(std::initializer_list<double> times) {
  std::vector<Sample> made;
  for (const double ms : times) made.push_back({ms, 0});
  return made;
}

Policy racing(double limit, double noise) {
  Policy policy;
  policy.give_up_ms = limit;
  policy.noise = noise;
  return policy;
}

TEST(Race, WithoutALimitNothingIsHopeless) {
  EXPECT_EQ(standing(samples({100, 100, 100}), {}), Standing::kOpen);
}

TEST(Race, BlindItTakesTwoSamplesTenPercentBehind) {
  const Policy policy = racing(1.0, 0);
  EXPECT_EQ(samples_wanted(0, policy), 2);
  EXPECT_EQ(standing(samples({9.0}), policy), Standing::kOpen);
  EXPECT_EQ(standing(samples({9.0, 1.09}), policy), Standing::kOpen);
  EXPECT_EQ(standing(samples({9.0, 1.11}), policy), Standing::kHopeless);
}

TEST(Race, KnownNoiseDecidesHowFarBehindIsHopeless) {
  const Policy quiet = racing(1.0, 0.001);
  EXPECT_EQ(samples_wanted(0, quiet), 1);
  EXPECT_EQ(standing(samples({1.031}), quiet), Standing::kHopeless);
  EXPECT_EQ(standing(samples({1.029}), quiet), Standing::kOpen);
  EXPECT_EQ(standing(samples({1.029, 1.011}), quiet), Standing::kHopeless);
  const Policy noisy = racing(1.0, 0.02);
  EXPECT_EQ(standing(samples({1.11}), noisy), Standing::kOpen);
  EXPECT_EQ(standing(samples({1.13}), noisy), Standing::kHopeless);
  EXPECT_EQ(standing(samples({1.13, 1.05}), noisy), Standing::kOpen);
  // One of two, or the minority of more, may have been disturbed.
  EXPECT_EQ(standing(samples({5, 0.99}), quiet), Standing::kOpen);
  EXPECT_EQ(standing(samples({5, 5, 0.99, 0.99, 0.99}), quiet), Standing::kOpen);
}

TEST(Race, AMedianClearlyBehindIsHopelessThoughOneSampleIsNot) {
  const Policy policy = racing(1.0, 0.01);
  EXPECT_EQ(standing(samples({1.0, 1.03, 1.03}), policy), Standing::kHopeless);
  EXPECT_EQ(standing(samples({1.0, 1.01, 1.03}), policy), Standing::kOpen);
  EXPECT_EQ(standing(samples({1.0, 1.03}), policy), Standing::kOpen);
  // More samples tell smaller differences.
  EXPECT_EQ(standing(samples({0.99, 1.016, 1.016, 1.016, 1.016, 1.016, 1.016}), policy),
            Standing::kHopeless);
  EXPECT_EQ(standing(samples({0.99, 1.016, 1.016}), policy), Standing::kOpen);
}

TEST(Race, SettledNeedsTheLeastNumberOfSamplesAndANarrowInterval) {
  Policy policy;
  EXPECT_EQ(standing(samples({1, 1, 1, 1, 1, 1}), policy), Standing::kOpen);
  EXPECT_EQ(standing(samples({1, 1, 1, 1, 1, 1, 1}), policy), Standing::kSettled);
  EXPECT_EQ(standing(samples({1, 1, 1, 1, 1, 1.5, 0.5}), policy), Standing::kOpen);
}

TEST(Race, SamplesWantedNeverPassesTheMost) {
  Policy policy;
  policy.min_samples = 7;
  policy.max_samples = 9;
  EXPECT_EQ(samples_wanted(0, policy), 7);
  EXPECT_EQ(samples_wanted(8, policy), 1);
  EXPECT_EQ(samples_wanted(9, policy), 1);
}

TEST(Race, NoiseIsRobustAgainstOneDisturbedSampleAndSeesATail) {
  EXPECT_EQ(relative_noise(samples({1, 1, 1, 1})), 0);
  EXPECT_NEAR(relative_noise(samples({0.99, 1, 1, 1.01, 1, 1, 1, 1, 1, 1, 1, 1, 1, 9})), 0.0043,
              0.01);
  EXPECT_GT(relative_noise(samples({1, 1, 1, 1, 1, 1, 1, 1.2, 1.2, 1.2})), 0.1);
  EXPECT_EQ(pooled_noise({}), 0);
  EXPECT_DOUBLE_EQ(pooled_noise({0.01, 0.02}), 0.04);
  EXPECT_NEAR(pooled_noise({0.01, 0.01, 0.01, 0.01, 0.5}), 0.01, 1e-9);
  EXPECT_GT(pooled_noise({0, 0, 0, 0}), 0);
}

// A loaded machine scatters samples over ten times their median. That is noise, and no error.
TEST(Race, AnyMeasuredNoiseIsAValidPolicy) {
  Policy policy;
  policy.noise = pooled_noise({40, 60, 80, 300});
  EXPECT_EQ(policy.noise, kMaxNoise);
  EXPECT_TRUE(policy_from_json(to_json(policy)).is_ok());
  policy.noise = pooled_noise({7});
  EXPECT_TRUE(policy_from_json(to_json(policy)).is_ok());
}

}  // namespace
}  // namespace purlin::measure
