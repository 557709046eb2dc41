// SPDX-License-Identifier: Apache-2.0
#include "measure/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace purlin::measure {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <class T>
std::optional<Difference> differ(Dtype dtype, std::vector<T> got, std::vector<T> expected,
                                 Tolerance tolerance = {0.01, 0.001}) {
  return compare(dtype, got.data(), expected.data(), got.size(), tolerance);
}

TEST(Compare, RealsWithinToleranceAreEqual) {
  EXPECT_FALSE(differ<float>(Dtype::kF32, {100.9F, 0.0009F}, {100.0F, 0.0F}));
  const auto difference = differ<float>(Dtype::kF32, {1, 102, 3, 9}, {1, 100, 3, 4});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->first, 1u);
  EXPECT_EQ(difference->count, 2u);
  EXPECT_FALSE(differ<double>(Dtype::kF64, {1e300}, {1.001e300}));
}

TEST(Compare, TheMagnitudeIsThatOfATypicalElement) {
  const auto magnitude = [](const std::vector<float>& all) {
    return magnitude_of(Dtype::kF32, all.data(), all.size());
  };
  EXPECT_DOUBLE_EQ(magnitude({3, -3, 3, -3}), 3);
  EXPECT_DOUBLE_EQ(magnitude({0, 0, 0, 0}), 0);
  EXPECT_DOUBLE_EQ(magnitude({1, kNan, -1, kInf}), 1);
  // One huge element would hide every error in the others.
  EXPECT_DOUBLE_EQ(magnitude({1, 1, 1, 1, 1e20F}), 10);
  // Zeros are no sizes: of a sparse output the others count.
  EXPECT_NEAR(magnitude({0, 0, 0, 2}), 1, 1e-9);
  const std::vector<std::int32_t> integers = {100, 200};
  EXPECT_EQ(magnitude_of(Dtype::kI32, integers.data(), 2), 0);
}

TEST(Compare, TheLargestDifferenceIsInfiniteWhereOneIsNotFinite) {
  const auto largest = [](std::vector<float> got, std::vector<float> expected) {
    return largest_difference(Dtype::kF32, got.data(), expected.data(), got.size());
  };
  EXPECT_DOUBLE_EQ(largest({1, 2, kNan, kInf}, {1, 4, kNan, kInf}), 2);
  EXPECT_TRUE(std::isinf(largest({1, kNan}, {1, 1})));
  EXPECT_TRUE(std::isinf(largest({kInf, 1}, {1, 1})));
}

TEST(Compare, LongArraysAreComparedInPartsAsOne) {
  std::vector<float> expected(3'000'001, 1.0F), got = expected;
  EXPECT_FALSE(differ<float>(Dtype::kF32, got, expected));
  got[1'499'999] = got[1'500'000] = got[3'000'000] = 2.0F;
  const auto difference = differ<float>(Dtype::kF32, got, expected);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->first, 1'499'999u);
  EXPECT_EQ(difference->count, 3u);
}

// Long arrays are looked at in blocks first. What only a close look tells apart keeps its verdict.
TEST(Compare, BlocksOfALongArrayAreLookedAtCloselyWhereNeeded) {
  std::vector<float> expected(20'000, 1.0F), got(20'000, 1.0001F);
  expected[5'000] = got[5'000] = kNan;
  expected[5'001] = got[5'001] = kInf;
  expected[9'000] = 3e38F, got[9'000] = 3.0001e38F;
  EXPECT_FALSE(differ<float>(Dtype::kF32, got, expected));
  got[5'002] = kInf;
  got[13'000] = kNan;
  expected[13'001] = kInf;
  got[19'999] = 2.0F;
  const auto difference = differ<float>(Dtype::kF32, got, expected);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->first, 5'002u);
  EXPECT_EQ(difference->count, 4u);
}

TEST(Compare, NanEqualsOnlyNan) {
  EXPECT_FALSE(differ<float>(Dtype::kF32, {kNan, 1.0001F}, {-kNan, 1}));
  EXPECT_TRUE(differ<float>(Dtype::kF32, {kNan}, {1}));
  EXPECT_TRUE(differ<float>(Dtype::kF32, {1}, {kNan}));
}

TEST(Compare, InfinityEqualsOnlyItself) {
  EXPECT_FALSE(differ<float>(Dtype::kF32, {kInf, 1.0001F}, {kInf, 1}));
  EXPECT_TRUE(differ<float>(Dtype::kF32, {-kInf}, {kInf}));
  EXPECT_TRUE(differ<float>(Dtype::kF32, {3e38F}, {kInf}));
  EXPECT_TRUE(differ<float>(Dtype::kF32, {kInf}, {3e38F}));
}

TEST(Compare, NegativeZeroIsZero) {
  EXPECT_FALSE(differ<float>(Dtype::kF32, {-0.0F}, {0.0F}, {0, 0}));
}

TEST(Compare, IntegersAreExactForAnyRtol) {
  EXPECT_TRUE(differ<std::int32_t>(Dtype::kI32, {20001}, {20000}, {0.5, 0}));
  EXPECT_FALSE(differ<std::int32_t>(Dtype::kI32, {20001}, {20000}, {0, 1}));
  // 2^53 + 1 and the widest distance there is: neither survives a trip through double or int64.
  EXPECT_TRUE(differ<std::int64_t>(Dtype::kI64, {9007199254740993}, {9007199254740992}, {0, 0}));
  EXPECT_TRUE(differ<std::int64_t>(Dtype::kI64, {std::numeric_limits<std::int64_t>::max()},
                                   {std::numeric_limits<std::int64_t>::min()}, {0, 1e10}));
  EXPECT_TRUE(differ<std::uint8_t>(Dtype::kU8, {255}, {0}, {0, 1}));
}

TEST(Compare, HalvesCompareByValue) {
  std::uint16_t got[2], expected[2];
  store_element(Dtype::kF16, &got[0], 1.0);
  store_element(Dtype::kF16, &got[1], 2.0);
  store_element(Dtype::kF16, &expected[0], 1.001);
  store_element(Dtype::kF16, &expected[1], 2.5);
  const auto difference = compare(Dtype::kF16, got, expected, 2, {0.01, 0});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->first, 1u);
  EXPECT_EQ(element_text(Dtype::kF16, expected, 1), "2.5");
}

TEST(Poison, IsHiddenByRightValuesThatLookLikeIt) {
  const std::vector<std::int32_t> ints = {5, -1};
  EXPECT_TRUE(hides_poison(Dtype::kI32, ints.data(), 2, 0xFF, {}));
  EXPECT_FALSE(hides_poison(Dtype::kI32, ints.data(), 2, 0x5A, {}));
  const std::vector<float> reals = {1, kNan};
  EXPECT_TRUE(hides_poison(Dtype::kF32, reals.data(), 2, 0xFF, {}));
  EXPECT_FALSE(hides_poison(Dtype::kF32, reals.data(), 1, 0xFF, {}));
  EXPECT_EQ(find_poison(Dtype::kI32, ints.data(), 2, 0xFF), 1u);
  EXPECT_FALSE(find_poison(Dtype::kI32, ints.data(), 2, 0x5A));
}

TEST(Text, NamesPlaceAndValue) {
  EXPECT_EQ(multi_index_text(23, {2, 3, 4}), "[1,2,3]");
  EXPECT_EQ(multi_index_text(5, {8}), "");
  const std::int8_t byte = -3;
  EXPECT_EQ(element_text(Dtype::kI8, &byte, 0), "-3");
}

TEST(Compare, LongArraysAreComparedToTheLastElement) {
  std::vector<float> expected((std::size_t{1} << 22) + 3, 1.0F);
  std::vector<float> got = expected;
  const auto differing = [&] {
    return compare(Dtype::kF32, got.data(), expected.data(), got.size(), {1e-3, 0});
  };
  EXPECT_FALSE(differing().has_value());
  got.back() = 2;
  EXPECT_EQ(differing()->first, got.size() - 1);
  got[got.size() / 2] = got[5] = 2;
  EXPECT_EQ(differing()->first, 5u);
  EXPECT_EQ(differing()->count, 3u);
}

}  // namespace
}  // namespace purlin::measure
