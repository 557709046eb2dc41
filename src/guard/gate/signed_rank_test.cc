// SPDX-License-Identifier: Apache-2.0
#include "guard/gate/signed_rank.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace purlin::guard {
namespace {

// Independent of the implementation: ranks by counting, all 2^n sign patterns enumerated.
struct Enumerated {
  double p_greater, p_less;
};
Enumerated enumerate(const std::vector<double>& all) {
  std::vector<double> d;
  for (double x : all)
    if (x != 0) d.push_back(x);
  std::vector<double> rank(d.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    int smaller = 0, equal = 0;
    for (double other : d) {
      smaller += std::abs(other) < std::abs(d[i]);
      equal += std::abs(other) == std::abs(d[i]);
    }
    rank[i] = smaller + (equal + 1) / 2.0;
  }
  double observed = 0;
  for (std::size_t i = 0; i < d.size(); ++i) observed += d[i] > 0 ? rank[i] : 0;
  int at_least = 0, at_most = 0;
  const unsigned patterns = 1u << d.size();
  for (unsigned signs = 0; signs < patterns; ++signs) {
    double sum = 0;
    for (std::size_t i = 0; i < d.size(); ++i) sum += (signs >> i & 1) ? rank[i] : 0;
    at_least += sum >= observed;
    at_most += sum <= observed;
  }
  return {at_least / static_cast<double>(patterns), at_most / static_cast<double>(patterns)};
}

TEST(SignedRank, AgreesWithEnumerationOfEverySignPattern) {
  Random random(7);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t n = 1 + random.below(12);
    std::vector<double> d;
    // A coarse grid every other trial, for many ties and zeros.
    for (std::size_t i = 0; i < n; ++i)
      d.push_back(trial % 2 == 0 ? random.uniform(-1, 1.5)
                                 : static_cast<double>(random.below(7)) - 3);
    const SignedRank test = signed_rank_test(d);
    const Enumerated expected = enumerate(d);
    ASSERT_NEAR(test.p_greater, expected.p_greater, 1e-12) << "trial " << trial;
    ASSERT_NEAR(test.p_less, expected.p_less, 1e-12) << "trial " << trial;
  }
}

// Counted in whole numbers; to four digits they are the published tables' (R's psignrank).
TEST(SignedRank, KnownValuesOfTheNullLaw) {
  EXPECT_DOUBLE_EQ(signed_rank_cdf(5, 0), 1 / 32.0);
  EXPECT_NEAR(signed_rank_cdf(10, 10), 0.0419921875, 1e-12);     // 43 / 1024
  EXPECT_NEAR(signed_rank_cdf(10, 8), 0.0244140625, 1e-12);      // 25 / 1024
  EXPECT_DOUBLE_EQ(signed_rank_cdf(20, 60), 51017 / 1048576.0);  // the table's 0.0487
  EXPECT_EQ(signed_rank_cdf(4, 10), 1);
  EXPECT_EQ(signed_rank_cdf(4, -1), 0);
}

TEST(SignedRank, AllPositiveGivesTwoToTheMinusN) {
  for (int n : {1, 8, 20, 60, 100}) {
    std::vector<double> d;
    for (int i = 0; i < n; ++i) d.push_back(1 + i);
    EXPECT_NEAR(signed_rank_test(d).p_greater / std::ldexp(1.0, -n), 1, 1e-9) << n;
    EXPECT_NEAR(signed_rank_test(d).p_less, 1, 1e-12);
  }
}

TEST(SignedRank, ZerosSayNothing) {
  const SignedRank none = signed_rank_test({0, 0, 0});
  EXPECT_EQ(none.used, 0);
  EXPECT_EQ(none.p_greater, 1);
  EXPECT_EQ(none.p_less, 1);
  EXPECT_DOUBLE_EQ(signed_rank_test({0, 1, 0, 2}).p_greater, signed_rank_test({1, 2}).p_greater);
}

TEST(SignedRank, MirrorsWhenTheArmsAreSwapped) {
  Random random(11);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<double> d, mirrored;
    for (int i = 0; i < 40; ++i) {
      d.push_back(random.uniform(-1, 1.2));
      mirrored.push_back(-d.back());
    }
    EXPECT_NEAR(signed_rank_test(d).p_greater, signed_rank_test(mirrored).p_less, 1e-12);
    EXPECT_NEAR(hodges_lehmann(d), -hodges_lehmann(mirrored), 1e-12);
    const ExactInterval a = walsh_interval(d, 0.025), b = walsh_interval(mirrored, 0.025);
    EXPECT_NEAR(a.low, -b.high, 1e-12);
  }
}

// The level holds under a null with drift and steps in common, for every alpha.
TEST(SignedRank, LevelIsExactUnderCoinFlips) {
  Random random(3);
  int rejected = 0;
  constexpr int kTrials = 20000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> d;
    for (int i = 0; i < 10; ++i) {
      const double drift =
          0.01 * (1 + i) + (random.uniform() < 0.1 ? 0.2 : 0);  // second minus first
      d.push_back(random.uniform() < 0.5 ? drift : -drift);
    }
    rejected += signed_rank_test(d).p_greater <= 0.01;
  }
  // 0.01 +- 4 standard errors, and never above.
  EXPECT_LT(rejected, kTrials * 0.01 + 4 * std::sqrt(kTrials * 0.01));
  EXPECT_GT(rejected, kTrials * 0.005);
}

TEST(SignedRank, NormalApproximationMeetsTheExactLawWhereItTakesOver) {
  Random random(5);
  std::vector<double> d;
  for (int i = 0; i < kExactLimit; ++i) d.push_back(random.uniform(-1, 1.15));
  const double exact = signed_rank_test(d).p_greater;
  d.push_back(0.05);
  EXPECT_NEAR(signed_rank_test(d).p_greater / exact, 1, 0.1);
}

TEST(HodgesLehmann, IsTheMedianOfWalshAverages) {
  EXPECT_DOUBLE_EQ(hodges_lehmann({3}), 3);
  EXPECT_DOUBLE_EQ(hodges_lehmann({1, 2, 4}), 2.25);        // 1 1.5 2 | 2.5 3 4
  EXPECT_DOUBLE_EQ(hodges_lehmann({0, 0, 0, 0, 1000}), 0);  // one wild value does nothing
}

TEST(WalshInterval, CutsAsTheTablesSay) {
  // n = 8, 95 %: W_(4) and W_(33) of the 36 Walsh averages, achieved 0.9609.
  std::vector<double> d;
  for (int i = 1; i <= 8; ++i) d.push_back(i * i);
  std::vector<double> walsh;
  for (std::size_t i = 0; i < d.size(); ++i)
    for (std::size_t j = i; j < d.size(); ++j) walsh.push_back((d[i] + d[j]) / 2);
  std::sort(walsh.begin(), walsh.end());
  const ExactInterval interval = walsh_interval(d, 0.025);
  EXPECT_DOUBLE_EQ(interval.low, walsh[3]);
  EXPECT_DOUBLE_EQ(interval.high, walsh[32]);
  EXPECT_NEAR(interval.confidence, 0.9609375, 1e-12);
}

TEST(WalshInterval, TooFewValuesGiveTheRangeAndAdmitIt) {
  const ExactInterval interval = walsh_interval({1, 2, 3}, 0.025);
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 3);
  EXPECT_DOUBLE_EQ(interval.confidence, 0.75);
}

TEST(WalshInterval, CoversTheCentreAsOftenAsItSays) {
  Random random(17);
  int covered = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> d;
    for (int i = 0; i < 12; ++i) {
      const double u = random.uniform(-1, 1);
      d.push_back(0.05 + u * u * u);  // heavy shoulders, symmetric about 0.05
    }
    const ExactInterval interval = walsh_interval(d, 0.025);
    covered += interval.low <= 0.05 && 0.05 <= interval.high;
  }
  EXPECT_GT(covered, kTrials * 0.942);
  EXPECT_LT(covered, kTrials * 0.968);
}

TEST(Quantiles, InterpolateBetweenOrderStatistics) {
  EXPECT_DOUBLE_EQ(median_of({5, 1, 3}), 3);
  EXPECT_DOUBLE_EQ(median_of({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(quantile_of({1, 2, 3, 4, 5}, 0.95), 4.8);
  EXPECT_DOUBLE_EQ(quantile_of({7}, 0.5), 7);
}

}  // namespace
}  // namespace purlin::guard
