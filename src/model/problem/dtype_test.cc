// SPDX-License-Identifier: Apache-2.0
#include "model/problem/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace purlin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::uint16_t encode(Dtype dtype, double value) {
  std::uint16_t bits = 0;
  store_element(dtype, &bits, value);
  return bits;
}

double decode(Dtype dtype, int bits) {
  const auto half = static_cast<std::uint16_t>(bits);
  return load_element(dtype, &half);
}

class SmallFloat : public testing::TestWithParam<std::pair<Dtype, int>> {};

TEST_P(SmallFloat, EveryFiniteValueAndEveryMidpointRoundsRight) {
  const auto [dtype, infinity] = GetParam();
  for (int bits = 0; bits < infinity; ++bits) {
    const double value = decode(dtype, bits);
    ASSERT_EQ(encode(dtype, value), bits);
    ASSERT_EQ(encode(dtype, -value), bits | 0x8000);
    // Between the largest value and infinity the midpoint is that to the next power of two.
    const double next =
        bits + 1 < infinity ? decode(dtype, bits + 1) : value + (value - decode(dtype, bits - 1));
    const double middle = (value + next) / 2;
    ASSERT_EQ(encode(dtype, middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(encode(dtype, std::nextafter(middle, 0)), bits) << bits;
    ASSERT_EQ(encode(dtype, std::nextafter(middle, kInfinity)), bits + 1) << bits;
  }
}

TEST_P(SmallFloat, SpecialValues) {
  const auto [dtype, infinity] = GetParam();
  EXPECT_EQ(encode(dtype, kInfinity), infinity);
  EXPECT_EQ(encode(dtype, -1e300), infinity | 0x8000);
  EXPECT_EQ(encode(dtype, -0.0), 0x8000);
  EXPECT_EQ(encode(dtype, 1e-300), 0);
  EXPECT_TRUE(std::isnan(decode(dtype, encode(dtype, std::nan("")))));
  EXPECT_TRUE(std::isnan(decode(dtype, infinity + 1)));
  EXPECT_EQ(decode(dtype, infinity), kInfinity);
}

INSTANTIATE_TEST_SUITE_P(Dtype, SmallFloat,
                         testing::Values(std::pair{Dtype::kF16, 0x7C00},
                                         std::pair{Dtype::kBf16, 0x7F80}));

TEST(Dtype, KnownBits) {
  EXPECT_EQ(encode(Dtype::kF16, 1), 0x3C00);
  EXPECT_EQ(encode(Dtype::kF16, 65504), 0x7BFF);
  EXPECT_EQ(encode(Dtype::kF16, 0x1p-24), 0x0001);
  EXPECT_EQ(encode(Dtype::kBf16, -2), 0xC000);
  EXPECT_EQ(encode(Dtype::kBf16, 3.140625), 0x4049);
  // Through float this would round twice, and down.
  EXPECT_EQ(encode(Dtype::kF16, 1 + 0x1p-11 + 0x1p-40), 0x3C01);
}

TEST(Dtype, IntegersRoundAndSaturate) {
  const auto round_trip = [](Dtype dtype, double value) {
    std::uint64_t memory = 0;
    store_element(dtype, &memory, value);
    return load_element(dtype, &memory);
  };
  EXPECT_EQ(round_trip(Dtype::kI8, 300), 127);
  EXPECT_EQ(round_trip(Dtype::kI8, -300), -128);
  EXPECT_EQ(round_trip(Dtype::kU8, -1), 0);
  EXPECT_EQ(round_trip(Dtype::kI32, 2.5), 2);
  EXPECT_EQ(round_trip(Dtype::kI32, -1.7), -2);
  EXPECT_EQ(round_trip(Dtype::kI32, std::nan("")), 0);
  EXPECT_EQ(round_trip(Dtype::kI64, 1e300), 0x1p63);  // the limit, as a double
  EXPECT_EQ(round_trip(Dtype::kU64, kInfinity), 0x1p64);
  EXPECT_EQ(round_trip(Dtype::kI64, -kInfinity), -0x1p63);
  EXPECT_EQ(round_trip(Dtype::kU16, 65535), 65535);
  EXPECT_EQ(round_trip(Dtype::kF64, 0.1), 0.1);
  EXPECT_EQ(round_trip(Dtype::kF32, 0.1), 0.1f);
}

TEST(Dtype, EightBitRealsAreThoseOfTheHardware) {
  const auto encode8 = [](Dtype dtype, double value) {
    std::uint8_t byte = 0;
    store_element(dtype, &byte, value);
    return int{byte};
  };
  EXPECT_EQ(encode8(Dtype::kF8E4m3, 1), 0x38);
  EXPECT_EQ(encode8(Dtype::kF8E4m3, -448), 0xFE);
  EXPECT_EQ(encode8(Dtype::kF8E4m3, 1e6), 0x7F);
  EXPECT_EQ(encode8(Dtype::kF8E4m3, 0x1p-9), 0x01);
  EXPECT_EQ(encode8(Dtype::kF8E5m2, 1), 0x3C);
  EXPECT_EQ(encode8(Dtype::kF8E5m2, 57344), 0x7B);
  EXPECT_EQ(encode8(Dtype::kF8E5m2, 1e6), 0x7C);
  for (const Dtype dtype : {Dtype::kF8E4m3, Dtype::kF8E5m2})
    for (int code = 0; code < 256; ++code) {
      const auto byte = static_cast<std::uint8_t>(code);
      const double value = load_element(dtype, &byte);
      if (std::isnan(value)) continue;
      EXPECT_EQ(encode8(dtype, value), code) << name_of(dtype);
    }
}

TEST(Dtype, NamesAndSizes) {
  for (const char* name : {"f16", "bf16", "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32",
                           "i64", "u64", "f8e4m3", "f8e5m2"})
    EXPECT_EQ(name_of(dtype_from_name(name).value()), name);
  EXPECT_EQ(dtype_from_name("half"), Dtype::kF16);
  EXPECT_EQ(dtype_from_name("int"), Dtype::kI32);
  EXPECT_FALSE(dtype_from_name("F32").has_value());
  EXPECT_EQ(size_of(Dtype::kBf16), 2u);
  EXPECT_EQ(size_of(Dtype::kU64), 8u);
  EXPECT_TRUE(is_floating(Dtype::kBf16));
  EXPECT_FALSE(is_floating(Dtype::kI8));
}

}  // namespace
}  // namespace purlin
