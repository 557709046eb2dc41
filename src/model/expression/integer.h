// SPDX-License-Identifier: Apache-2.0
// The integer arithmetic of expressions: 64 bits, rounding toward minus infinity as in Python.
//
// Every form of an expression computes with these functions: the tree (arithmetic.cc), the steps of
// a lookup (integer_program.h) and the columns of a space (tune/space/terms.h). Checked functions
// return nullopt where the result is not defined or does not fit. Unchecked ones have a REQUIRES
// line. Pure functions, no allocation, no exception; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>

namespace purlin::integer {

// a // b. REQUIRES: b is not 0, and the quotient fits.
constexpr std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

// a % b: the sign of b. REQUIRES: b is not 0, and the quotient fits.
constexpr std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

constexpr bool divides(std::int64_t a, std::int64_t b) {
  return b != 0 && !(a == INT64_MIN && b == -1);
}

constexpr std::optional<std::int64_t> floor_divide(std::int64_t a, std::int64_t b) {
  if (!divides(a, b)) return std::nullopt;
  return floor_quotient(a, b);
}

// Also of the one dividend whose quotient by -1 does not fit: its remainder is 0.
constexpr std::optional<std::int64_t> modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  return b == -1 ? 0 : floor_remainder(a, b);
}

constexpr std::optional<std::int64_t> ceil_divide(std::int64_t a, std::int64_t b) {
  if (!divides(a, b)) return std::nullopt;
  return floor_quotient(a, b) + (a % b != 0 ? 1 : 0);
}

// The smallest multiple of `multiple` that is not below `value`, where `multiple` is positive.
inline std::optional<std::int64_t> round_up(std::int64_t value, std::int64_t multiple) {
  const std::optional<std::int64_t> quotient = ceil_divide(value, multiple);
  std::int64_t out = 0;
  if (!quotient || __builtin_mul_overflow(*quotient, multiple, &out)) return std::nullopt;
  return out;
}

// nullopt where the result does not fit. REQUIRES: exponent >= 0.
inline std::optional<std::int64_t> power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return std::nullopt;
    exponent >>= 1;
    if (exponent == 0) return result;
    // A base that overflows here is multiplied in later: the highest bit is still to come.
    if (__builtin_mul_overflow(base, base, &base)) return std::nullopt;
  }
}

// The smallest power of two that is not below `value`. REQUIRES: value <= 2^62.
constexpr std::int64_t pow2_ceil(std::int64_t value) {
  std::int64_t result = 1;
  while (result < value) result *= 2;
  return result;
}

}  // namespace purlin::integer
