// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sketch.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace purlin {
namespace {

TEST(Sketch, QuantilesAreWithinTheStatedError) {
  Random rng(7);
  std::vector<double> values;
  Sketch sketch;
  for (int i = 0; i < 20'000; ++i) {
    const double value = std::floor(std::exp(rng.uniform() * 16));  // 1 ns to 9 ms
    values.push_back(value);
    sketch.add(value);
  }
  std::sort(values.begin(), values.end());
  for (const double q : {0.01, 0.25, 0.5, 0.9, 0.95, 0.999}) {
    const double truth = values[static_cast<std::size_t>(std::ceil(q * 20'000)) - 1];
    EXPECT_NEAR(sketch.quantile(q), truth, truth * Sketch::kRelativeError * 1.0001) << q;
  }
  EXPECT_EQ(sketch.quantile(0), values.front());
  EXPECT_EQ(sketch.quantile(1), values.back());
  EXPECT_EQ(sketch.count(), 20'000);
}

// The buckets' definition, in docs/formats/profile.md: files written by one version are read by
// all. Bucket i holds (2^((i-1)/128), 2^(i/128)].
int bucket_by_definition(double ns) {
  if (!(ns > 1)) return 0;
  int bucket = std::min(Sketch::kMaxBuckets - 1, static_cast<int>(std::log2(ns) * 128));
  while (bucket > 0 && std::exp2((bucket - 1) / 128.0) >= ns) --bucket;
  while (bucket < Sketch::kMaxBuckets - 1 && std::exp2(bucket / 128.0) < ns) ++bucket;
  return bucket;
}

int bucket_of(double ns, int scale = Sketch::kScale) {
  Sketch sketch;
  sketch.reduce_to(scale);
  sketch.add(ns);
  return sketch.first_bucket();
}

TEST(Sketch, BucketsAreThoseOfTheDefinition) {
  for (int ns = 0; ns < 200'000; ++ns) ASSERT_EQ(bucket_of(ns), bucket_by_definition(ns)) << ns;
  Random rng(3);
  for (int i = 0; i < 200'000; ++i) {
    const double ns = std::exp(rng.uniform() * 45);
    ASSERT_EQ(bucket_of(ns), bucket_by_definition(ns)) << ns;
  }
  // The neighbours of every bound.
  for (int bucket = 0; bucket <= Sketch::kMaxBuckets; ++bucket) {
    double ns = std::exp2(bucket / 128.0);
    for (int i = 0; i < 8; ++i) ns = std::nextafter(ns, 0);
    for (int i = 0; i < 16; ++i, ns = std::nextafter(ns, INFINITY))
      ASSERT_EQ(bucket_of(ns), bucket_by_definition(ns)) << bucket;
  }
  for (int exponent = 0; exponent < 70; ++exponent)  // the edges of the cells
    for (int cell = 0; cell < 256; ++cell) {
      const double ns = std::ldexp(1 + cell / 256.0, exponent);
      ASSERT_EQ(bucket_of(ns), bucket_by_definition(ns)) << ns;
      const double before = std::nextafter(ns, 0);
      ASSERT_EQ(bucket_of(before), bucket_by_definition(before)) << before;
    }
}

// OpenTelemetry's data model: at scale s, index i holds (g^i, g^(i+1)] with g = 2^(2^-s), and a
// power of two is the upper bound of its bucket.
TEST(Sketch, BucketsAreThoseOfOpenTelemetry) {
  for (int scale = 0; scale <= Sketch::kScale; ++scale)
    for (int exponent = 1; exponent < 50; ++exponent) {
      const double ns = std::ldexp(1.0, exponent);
      EXPECT_EQ(bucket_of(ns, scale) - 1, (exponent << scale) - 1);
      EXPECT_EQ(bucket_of(std::nextafter(ns, INFINITY), scale) - 1, exponent << scale);
      EXPECT_EQ(Sketch::upper_bound(bucket_of(ns, scale), scale), ns);
    }
  EXPECT_NEAR(Sketch::relative_error(7), Sketch::kRelativeError, 1e-8);
  EXPECT_NEAR(Sketch::relative_error(5), 0.01083, 1e-6);
}

TEST(Sketch, ALowerScaleIsThatOfTheSamplesThemselves) {
  Random rng(11);
  Sketch fine;
  std::vector<double> values;
  for (int i = 0; i < 5'000; ++i) {
    values.push_back(i % 50 == 0 ? rng.uniform() : std::exp(rng.uniform() * 25));
    fine.add(values.back(), 1 + i % 3);
  }
  for (int scale = Sketch::kScale; scale >= 0; --scale) {
    Sketch direct;
    direct.reduce_to(scale);
    for (std::size_t i = 0; i < values.size(); ++i) direct.add(values[i], 1 + i % 3);
    fine.reduce_to(scale);  // step by step: 7 to 6 to 5 ...
    EXPECT_EQ(fine.scale(), scale);
    EXPECT_EQ(fine.first_bucket(), direct.first_bucket());
    EXPECT_EQ(fine.buckets(), direct.buckets());
    EXPECT_EQ(fine.total_ns(), direct.total_ns());
    EXPECT_EQ(fine.min_ns(), direct.min_ns());
    EXPECT_EQ(fine.quantile(0.9), direct.quantile(0.9));
  }
  fine.reduce_to(Sketch::kScale);
  EXPECT_EQ(fine.scale(), 0);
}

TEST(Sketch, MergingDifferentScalesGivesTheLower) {
  Sketch fine, coarse, expected;
  coarse.reduce_to(5);
  for (int i = 1; i < 500; ++i) {
    (i % 2 == 0 ? fine : coarse).add(37.0 * i);
    expected.add(37.0 * i);
  }
  expected.reduce_to(5);
  Sketch one = fine, other = coarse;
  one.merge(coarse);
  other.merge(fine);
  for (const Sketch* merged : {&one, &other}) {
    EXPECT_EQ(merged->scale(), 5);
    EXPECT_EQ(merged->first_bucket(), expected.first_bucket());
    EXPECT_EQ(merged->buckets(), expected.buckets());
  }
}

TEST(Sketch, WeightsStandForWhatWasNotSampled) {
  Sketch sampled, full;
  for (int i = 1; i <= 100; ++i) {
    sampled.add(i * 10, 4);
    for (int k = 0; k < 4; ++k) full.add(i * 10);
  }
  EXPECT_EQ(sampled.count(), full.count());
  EXPECT_EQ(sampled.total_ns(), full.total_ns());
  EXPECT_EQ(sampled.quantile(0.5), full.quantile(0.5));
}

TEST(Sketch, MergingInAnyOrderIsTheSame) {
  Sketch parts[3], whole;
  for (int i = 0; i < 300; ++i) {
    const double value = 10 + (i * 7919) % 100'000;
    parts[i % 3].add(value);
    whole.add(value);
  }
  Sketch forward, backward;
  for (int i = 0; i < 3; ++i) {
    forward.merge(parts[i]);
    backward.merge(parts[2 - i]);
  }
  for (const Sketch* sketch : {&forward, &backward}) {
    EXPECT_EQ(sketch->buckets(), whole.buckets());
    EXPECT_EQ(sketch->first_bucket(), whole.first_bucket());
    EXPECT_EQ(sketch->min_ns(), whole.min_ns());
    EXPECT_EQ(sketch->max_ns(), whole.max_ns());
  }
}

TEST(Sketch, StrangeSamplesAreBounded) {
  Sketch sketch;
  sketch.add(-5);
  sketch.add(0);
  sketch.add(1e300);
  sketch.add(std::nan(""));
  sketch.add(INFINITY);
  sketch.add(10, 0);
  sketch.add(10, -1);
  EXPECT_EQ(sketch.count(), 3);
  EXPECT_LE(sketch.buckets().size(), static_cast<std::size_t>(Sketch::kMaxBuckets));
}

TEST(Sketch, RestoreRefusesWhatDoesNotBelongTogether) {
  Sketch sketch;
  EXPECT_TRUE(sketch.restore(5, {1, 0, 2}, 30, 1, 20));
  EXPECT_EQ(sketch.count(), 3);
  EXPECT_FALSE(sketch.restore(-1, {1}, 1, 1, 1));
  EXPECT_FALSE(sketch.restore(Sketch::kMaxBuckets, {1}, 1, 1, 1));
  EXPECT_FALSE(sketch.restore(0, {-1}, 1, 1, 1));
  EXPECT_FALSE(sketch.restore(0, {1}, 1, 2, 1));
  EXPECT_FALSE(sketch.restore(0, {0}, 0, 0, 0));
  EXPECT_FALSE(sketch.restore(0, {1}, 1, 1, 1, Sketch::kScale + 1));
  EXPECT_FALSE(sketch.restore(Sketch::kMaxBuckets / 4 + 1, {1}, 1, 1, 1, Sketch::kScale - 2));
  EXPECT_TRUE(sketch.empty());
}

TEST(Sketch, ScaledHasExactSumsAndMovedQuantiles) {
  Sketch sketch;
  for (int i = 1; i <= 100; ++i) sketch.add(1000.0 * i);
  const Sketch scaled = sketch.scaled(1.5, 4);
  EXPECT_DOUBLE_EQ(scaled.total_ns(), sketch.total_ns() * 6);
  EXPECT_DOUBLE_EQ(scaled.count(), 400);
  EXPECT_DOUBLE_EQ(scaled.min_ns(), 1500);
  EXPECT_DOUBLE_EQ(scaled.max_ns(), 150'000);
  EXPECT_NEAR(scaled.quantile(0.5), 75'000, 75'000 * 2.1 * Sketch::kRelativeError);
  EXPECT_TRUE(Sketch().scaled(2, 2).empty());
}

}  // namespace
}  // namespace purlin
