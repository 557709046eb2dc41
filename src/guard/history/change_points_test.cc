// SPDX-License-Identifier: Apache-2.0
#include "guard/history/change_points.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin::guard {
namespace {

// A series of `n` values around 100 whose noise is AR(phi) with stationary deviation `sd`.
std::vector<double> series(std::size_t n, double sd, double phi, Random& random) {
  std::vector<double> values;
  double noise = random.normal();
  for (std::size_t i = 0; i < n; ++i) {
    noise = phi * noise + std::sqrt(1 - phi * phi) * random.normal();
    values.push_back(100 * std::exp(sd * noise));
  }
  return values;
}

TEST(ChangePoints, FindsAStepAndSaysHowBig) {
  Random random(3);
  std::vector<double> values = series(60, 0.01, 0, random);
  for (std::size_t i = 41; i < values.size(); ++i) values[i] *= 1.06;
  const std::vector<ChangePoint> points = find_change_points(values, {});
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].index, 41u);
  EXPECT_NEAR(points[0].ratio, 1.06, 0.01);
  EXPECT_LE(points[0].p_value, 0.01);
}

TEST(ChangePoints, FindsTwoAndMeasuresEachAgainstItsNeighbours) {
  Random random(5);
  std::vector<double> values = series(90, 0.005, 0, random);
  for (std::size_t i = 30; i < 60; ++i) values[i] *= 1.10;
  const std::vector<ChangePoint> points = find_change_points(values, {});
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].index, 30u);
  EXPECT_EQ(points[1].index, 60u);
  EXPECT_NEAR(points[1].ratio, 1 / 1.10, 0.01);
  EXPECT_EQ(points[1].begin, 30u);
}

// Few blocks have few orders: no permutation of these is significant at 1 %.
TEST(ChangePoints, AStepFarAboveTheNoiseOfAShortSeries) {
  for (const std::size_t n : {std::size_t{6}, std::size_t{14}})
    for (const double phi : {0.0, 0.9}) {
      Random random(11);
      std::vector<double> values = series(n, 0.002, phi, random);
      for (std::size_t i = n / 2; i < n; ++i) values[i] *= 1.22;
      const std::vector<ChangePoint> points = find_change_points(values, {});
      ASSERT_EQ(points.size(), 1u) << n << " points, phi = " << phi;
      EXPECT_EQ(points[0].index, n / 2);
      EXPECT_NEAR(points[0].ratio, 1.22, 0.02);
    }
  EXPECT_EQ(find_change_points({3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4}, {}).size(), 1u);
  EXPECT_EQ(find_change_points({1, 1, 1, 2, 2, 2}, {}).size(), 1u);
  EXPECT_TRUE(find_change_points({1, 1, 1, 1, 2, 2}, {}).empty());  // two points stay nowhere
  EXPECT_TRUE(find_change_points({1, 1, 1, 1, 2, 1, 1, 1, 1}, {}).empty());
}

// No permutation of so few points is significant, so only their largest difference can annotate.
TEST(ChangePoints, ShortUnchangedSeriesStayUnannotated) {
  for (const double phi : {0.0, 0.5, 0.95}) {
    int annotated = 0;
    for (std::uint64_t trial = 0; trial < 1000; ++trial) {
      Random random(5000 + trial);
      ChangePointOptions options;
      options.permutations = 199;
      options.seed = trial;
      annotated += !find_change_points(series(6 + trial % 4, 0.03, phi, random), options).empty();
    }
    EXPECT_LE(annotated, 10) << "phi = " << phi;
  }
}

TEST(ChangePoints, SmallMovesAndShortSeriesAreNotAnnotated) {
  Random random(7);
  std::vector<double> values = series(80, 0.001, 0, random);
  for (std::size_t i = 40; i < 80; ++i) values[i] *= 1.01;
  EXPECT_TRUE(find_change_points(values, {}).empty());
  ChangePointOptions any;
  any.min_magnitude = 0;
  ASSERT_EQ(find_change_points(values, any).size(), 1u);
  EXPECT_TRUE(find_change_points({1, 1, 2, 2, 2}, {}).empty());
  EXPECT_TRUE(find_change_points({}, {}).empty());
  EXPECT_TRUE(find_change_points(std::vector<double>(50, 3.0), {}).empty());
}

// The share of unchanged series with an annotation, without a minimum magnitude. Hunter's
// t-test: 3.3 % on white noise and 73 % on AR(0.5) at n = 100.
TEST(ChangePoints, UnchangedSeriesStayUnannotated) {
  ChangePointOptions options;
  options.min_magnitude = 0;
  options.permutations = 199;
  for (const double phi : {0.0, 0.5}) {
    int annotated = 0;
    for (std::uint64_t trial = 0; trial < 100; ++trial) {
      Random random(1000 + trial);
      options.seed = trial;
      annotated += !find_change_points(series(60, 0.01, phi, random), options).empty();
    }
    EXPECT_LE(annotated, phi == 0 ? 4 : 10) << "phi = " << phi;
  }
}

TEST(ChangePoints, LongSeriesAreBoundedToTheirLatestPoints) {
  Random random(9);
  std::vector<double> values = series(500, 0.005, 0, random);
  for (std::size_t i = 50; i < 500; ++i) values[i] *= 1.2;  // too old to be used
  for (std::size_t i = 480; i < 500; ++i) values[i] *= 1.05;
  ChangePointOptions options;
  options.max_points = 100;
  const std::vector<ChangePoint> points = find_change_points(values, options);
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].index, 480u);
  EXPECT_EQ(points[0].begin, 400u);
}

TEST(BenjaminiHochberg, AllowsARateOfFalseDiscoveries) {
  EXPECT_EQ(benjamini_hochberg({0.001, 0.04, 0.03, 0.9}, 0.05),
            (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(benjamini_hochberg({0.001, 0.012, 0.03, 0.9}, 0.05),
            (std::vector<bool>{true, true, true, false}));
  EXPECT_TRUE(benjamini_hochberg({}, 0.05).empty());
}

}  // namespace
}  // namespace purlin::guard
