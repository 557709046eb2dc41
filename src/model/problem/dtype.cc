// SPDX-License-Identifier: Apache-2.0
#include "model/problem/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace purlin {
namespace {

struct DtypeName {
  std::string_view name;
  Dtype dtype;
};

// The first name of each is the canonical one; the others are those of C, OpenCL and NumPy.
constexpr DtypeName kNames[] = {
    {"f16", Dtype::kF16},
    {"half", Dtype::kF16},
    {"float16", Dtype::kF16},
    {"bf16", Dtype::kBf16},
    {"bfloat16", Dtype::kBf16},
    {"f32", Dtype::kF32},
    {"float", Dtype::kF32},
    {"float32", Dtype::kF32},
    {"f64", Dtype::kF64},
    {"double", Dtype::kF64},
    {"float64", Dtype::kF64},
    {"i8", Dtype::kI8},
    {"char", Dtype::kI8},
    {"int8", Dtype::kI8},
    {"u8", Dtype::kU8},
    {"uchar", Dtype::kU8},
    {"uint8", Dtype::kU8},
    {"i16", Dtype::kI16},
    {"short", Dtype::kI16},
    {"int16", Dtype::kI16},
    {"u16", Dtype::kU16},
    {"ushort", Dtype::kU16},
    {"uint16", Dtype::kU16},
    {"i32", Dtype::kI32},
    {"int", Dtype::kI32},
    {"int32", Dtype::kI32},
    {"u32", Dtype::kU32},
    {"uint", Dtype::kU32},
    {"uint32", Dtype::kU32},
    {"i64", Dtype::kI64},
    {"long", Dtype::kI64},
    {"int64", Dtype::kI64},
    {"u64", Dtype::kU64},
    {"ulong", Dtype::kU64},
    {"uint64", Dtype::kU64},
    {"f8e4m3", Dtype::kF8E4m3},
    {"float8_e4m3fn", Dtype::kF8E4m3},
    {"f8e5m2", Dtype::kF8E5m2},
    {"float8_e5m2", Dtype::kF8E5m2},
};

// A 16-bit binary float: sign, exponent, `kMantissa` bits of fraction.
template <int kMantissa>
struct Small {
  static constexpr int kBias = (1 << (14 - kMantissa)) - 1;
  static constexpr int kInfinity = (2 * kBias + 1) << kMantissa;

  // Rounds to nearest even straight from the double: going through float would round twice.
  static std::uint16_t encode(double value) {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const auto bits = [&](int magnitude) { return static_cast<std::uint16_t>(sign | magnitude); };
    // Nearly all values are normal here and there: a matter of cutting bits, which a carry out of
    // the fraction survives. Inputs of gigabytes go through this.
    const auto wide = std::bit_cast<std::uint64_t>(value);
    if (const int power = static_cast<int>(wide >> 52 & 0x7FF) - 1023;
        power > -kBias && power < kBias) {
      constexpr int kCut = 52 - kMantissa;
      const std::uint64_t half = (std::uint64_t{1} << (kCut - 1)) - 1 + (wide >> kCut & 1);
      const std::uint64_t fraction = (wide & ((std::uint64_t{1} << 52) - 1)) + half;
      return bits(((power + kBias) << kMantissa) + static_cast<int>(fraction >> kCut));
    }
    if (std::isnan(value)) return bits(kInfinity | 1 << (kMantissa - 1));
    if (std::isinf(value)) return bits(kInfinity);
    if (value == 0) return bits(0);
    const double size = std::abs(value);
    const int exponent = std::max(std::ilogb(size), 1 - kBias);
    if (exponent > kBias) return bits(kInfinity);
    // In units of the last place; a carry out of the fraction moves into the exponent by itself,
    // and a subnormal has no implicit bit to take away.
    const int units = static_cast<int>(std::nearbyint(std::ldexp(size, kMantissa - exponent)));
    return bits(((exponent + kBias - 1) << kMantissa) + units);
  }

  static double decode(std::uint16_t bits) {
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    const int exponent = (bits & 0x7FFF) >> kMantissa;
    const int fraction = bits & ((1 << kMantissa) - 1);
    if (exponent > 0 && exponent <= 2 * kBias)
      return std::bit_cast<double>(std::uint64_t{bits & 0x8000u} << 48 |
                                   static_cast<std::uint64_t>(exponent - kBias + 1023) << 52 |
                                   static_cast<std::uint64_t>(fraction) << (52 - kMantissa));
    if (exponent == 2 * kBias + 1) {
      if (fraction == 0) return sign * std::numeric_limits<double>::infinity();
      return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
    }
    return sign * std::ldexp(fraction, 1 - kBias - kMantissa);
  }
};
using Half = Small<10>;
using Bfloat = Small<7>;

// e4m3: every code but the last of each sign is a number, so the largest is 448.
struct E4m3 {
  static std::uint8_t encode(double value) {
    const int sign = std::signbit(value) ? 0x80 : 0;
    const auto bits = [&](int magnitude) { return static_cast<std::uint8_t>(sign | magnitude); };
    if (std::isnan(value) || std::isinf(value)) return bits(0x7F);
    if (value == 0) return bits(0);
    const double size = std::abs(value);
    const int exponent = std::max(std::ilogb(size), -6);
    if (exponent > 8) return bits(0x7F);
    const int units = static_cast<int>(std::nearbyint(std::ldexp(size, 3 - exponent)));
    return bits(std::min(((exponent + 6) << 3) + units, 0x7F));
  }
  static double decode(std::uint8_t bits) {
    const double sign = (bits & 0x80) != 0 ? -1 : 1;
    const int exponent = (bits & 0x7F) >> 3, fraction = bits & 7;
    if ((bits & 0x7F) == 0x7F) return std::numeric_limits<double>::quiet_NaN();
    if (exponent == 0) return sign * std::ldexp(fraction, -9);
    return sign * std::ldexp(fraction + 8, exponent - 10);
  }
};

// e5m2 is the upper byte of an f16; rounded from the value itself, not from the f16.
struct E5m2 {
  static std::uint8_t encode(double value) {
    const int sign = std::signbit(value) ? 0x80 : 0;
    const auto bits = [&](int magnitude) { return static_cast<std::uint8_t>(sign | magnitude); };
    if (std::isnan(value)) return bits(0x7E);
    if (value == 0) return bits(0);
    const double size = std::abs(value);
    if (std::isinf(value) || std::ilogb(size) > 15) return bits(0x7C);
    const int exponent = std::max(std::ilogb(size), -14);
    const int units = static_cast<int>(std::nearbyint(std::ldexp(size, 2 - exponent)));
    return bits(((exponent + 14) << 2) + units);
  }
  static double decode(std::uint8_t bits) {
    return Half::decode(static_cast<std::uint16_t>(bits << 8));
  }
};

template <class T>
T load(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

template <class T>
void store(void* address, T value) {
  std::memcpy(address, &value, sizeof value);
}

// Nearest even, saturating; NaN becomes 0.
template <class T>
T to_integer(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  // The limits of 64-bit types are not doubles: their upper one rounds up, so >= is the test.
  if (rounded >= static_cast<double>(Limits::max())) return Limits::max();
  if (rounded <= static_cast<double>(Limits::min())) return Limits::min();
  return static_cast<T>(rounded);
}

}  // namespace

std::size_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kI8:
    case Dtype::kU8:
    case Dtype::kF8E4m3:
    case Dtype::kF8E5m2:
      return 1;
    case Dtype::kF16:
    case Dtype::kBf16:
    case Dtype::kI16:
    case Dtype::kU16:
      return 2;
    case Dtype::kF32:
    case Dtype::kI32:
    case Dtype::kU32:
      return 4;
    case Dtype::kF64:
    case Dtype::kI64:
    case Dtype::kU64:
      return 8;
  }
  return 0;
}

double rounding_rtol(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF16:
      return 1e-3;
    case Dtype::kBf16:
      return 1.6e-2;
    case Dtype::kF8E4m3:
      return 0.125;
    case Dtype::kF8E5m2:
      return 0.25;
    default:
      return 0;
  }
}

std::string_view name_of(Dtype dtype) {
  for (const DtypeName& entry : kNames)
    if (entry.dtype == dtype) return entry.name;
  return "";
}

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (const DtypeName& entry : kNames)
    if (entry.name == name) return entry.dtype;
  return std::nullopt;
}

bool is_floating(Dtype dtype) {
  return dtype == Dtype::kF16 || dtype == Dtype::kBf16 || dtype == Dtype::kF32 ||
         dtype == Dtype::kF64 || dtype == Dtype::kF8E4m3 || dtype == Dtype::kF8E5m2;
}

double load_element(Dtype dtype, const void* address) {
  switch (dtype) {
    case Dtype::kF16:
      return Half::decode(load<std::uint16_t>(address));
    case Dtype::kBf16:
      return Bfloat::decode(load<std::uint16_t>(address));
    case Dtype::kF32:
      return static_cast<double>(load<float>(address));
    case Dtype::kF64:
      return load<double>(address);
    case Dtype::kI8:
      return load<std::int8_t>(address);
    case Dtype::kU8:
      return load<std::uint8_t>(address);
    case Dtype::kI16:
      return load<std::int16_t>(address);
    case Dtype::kU16:
      return load<std::uint16_t>(address);
    case Dtype::kI32:
      return load<std::int32_t>(address);
    case Dtype::kU32:
      return load<std::uint32_t>(address);
    case Dtype::kI64:
      return static_cast<double>(load<std::int64_t>(address));
    case Dtype::kU64:
      return static_cast<double>(load<std::uint64_t>(address));
    case Dtype::kF8E4m3:
      return E4m3::decode(load<std::uint8_t>(address));
    case Dtype::kF8E5m2:
      return E5m2::decode(load<std::uint8_t>(address));
  }
  return 0;
}

void store_element(Dtype dtype, void* address, double value) {
  switch (dtype) {
    case Dtype::kF16:
      return store(address, Half::encode(value));
    case Dtype::kBf16:
      return store(address, Bfloat::encode(value));
    case Dtype::kF32:
      return store(address, static_cast<float>(value));
    case Dtype::kF64:
      return store(address, value);
    case Dtype::kI8:
      return store(address, to_integer<std::int8_t>(value));
    case Dtype::kU8:
      return store(address, to_integer<std::uint8_t>(value));
    case Dtype::kI16:
      return store(address, to_integer<std::int16_t>(value));
    case Dtype::kU16:
      return store(address, to_integer<std::uint16_t>(value));
    case Dtype::kI32:
      return store(address, to_integer<std::int32_t>(value));
    case Dtype::kU32:
      return store(address, to_integer<std::uint32_t>(value));
    case Dtype::kI64:
      return store(address, to_integer<std::int64_t>(value));
    case Dtype::kU64:
      return store(address, to_integer<std::uint64_t>(value));
    case Dtype::kF8E4m3:
      return store(address, E4m3::encode(value));
    case Dtype::kF8E5m2:
      return store(address, E5m2::encode(value));
  }
}

}  // namespace purlin
