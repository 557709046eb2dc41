// SPDX-License-Identifier: Apache-2.0
#include "measure/contents.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace purlin::measure {
namespace {

Argument argument(Dtype dtype, Argument::Fill fill, double a, double b) {
  Argument result;
  result.dtype = dtype;
  result.fill = fill;
  result.fill_a = a;
  result.fill_b = b;
  return result;
}

TEST(Contents, DoNotDependOnHowTheWorkIsSplit) {
  // Three million elements are filled by several threads, ten by one.
  const Argument arg = argument(Dtype::kF32, Argument::Fill::kNormal, 0, 1);
  std::vector<float> large(3'000'000), small(10);
  fill_contents(arg, 7, large.size(), large.data());
  fill_contents(arg, 7, small.size(), small.data());
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
}

TEST(Contents, AreThoseOfTheFormat) {
  // Pinned: a change here changes what every baseline was measured on.
  std::vector<float> values(4);
  fill_contents(argument(Dtype::kF32, Argument::Fill::kUniform, -1, 1), 1, 4, values.data());
  const float expected[] = {0.13312315F, 0.491563515F, 0.942005507F, -0.111281566F};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(values[i], expected[i]) << i;
}

TEST(Contents, UniformStaysInsideAndIsEven) {
  std::vector<double> values(100'000);
  fill_contents(argument(Dtype::kF64, Argument::Fill::kUniform, 2, 6), 3, values.size(),
                values.data());
  double sum = 0;
  for (const double value : values) {
    ASSERT_GE(value, 2);
    ASSERT_LT(value, 6);
    sum += value;
  }
  EXPECT_NEAR(sum / 1e5, 4, 0.02);
}

TEST(Contents, NormalHasItsMeanAndDeviation) {
  std::vector<double> values(100'000);
  fill_contents(argument(Dtype::kF64, Argument::Fill::kNormal, 5, 2), 3, values.size(),
                values.data());
  double sum = 0, squares = 0;
  for (const double value : values) {
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += (value - 5) * (value - 5);
  }
  EXPECT_NEAR(sum / 1e5, 5, 0.03);
  EXPECT_NEAR(std::sqrt(squares / 1e5), 2, 0.03);
}

TEST(Contents, IntegersTakeBothEnds) {
  std::vector<std::int32_t> values(1000);
  fill_contents(argument(Dtype::kI32, Argument::Fill::kUniform, -1, 2), 3, values.size(),
                values.data());
  EXPECT_EQ(std::set<std::int32_t>(values.begin(), values.end()),
            (std::set<std::int32_t>{-1, 0, 1, 2}));
}

TEST(Contents, IotaStaysExact) {
  std::vector<std::uint8_t> bytes(300);
  fill_contents(argument(Dtype::kU8, Argument::Fill::kIota, 0, 0), 1, 300, bytes.data());
  EXPECT_EQ(bytes[255], 255);
  EXPECT_EQ(bytes[256], 0);
  std::vector<std::uint16_t> halves(2049);
  fill_contents(argument(Dtype::kF16, Argument::Fill::kIota, 0, 0), 1, 2049, halves.data());
  EXPECT_EQ(load_element(Dtype::kF16, &halves[2047]), 2047);
  EXPECT_EQ(load_element(Dtype::kF16, &halves[2048]), 0);
}

TEST(Contents, EveryArgumentAndSeedDiffers) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t spec = 0; spec < 4; ++spec)
    for (std::uint64_t extra = 0; extra < 4; ++extra)
      for (std::size_t index = 0; index < 4; ++index)
        seeds.insert(contents_seed(spec, extra, index));
  EXPECT_EQ(seeds.size(), 64u);
}

}  // namespace
}  // namespace purlin::measure
