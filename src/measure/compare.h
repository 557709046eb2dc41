// SPDX-License-Identifier: Apache-2.0
// Element-wise comparison of a kernel's output with the reference's.
//
// Reals are equal when |got - expected| <= atol + rtol * |expected|, when both are the same
// infinity, or when both are NaN. Integers are equal when they differ by at most atol; rtol, whose
// default would pass 20001 for 20000, does not apply to them. Pure functions.
#pragma once

#include "model/problem/dtype.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace purlin::measure {

struct Tolerance {
  double rtol = 0, atol = 0;
};

struct Difference {
  std::size_t first = 0;  // flat index of the first element that differs
  std::size_t count = 0;  // how many differ
};

// nullopt when all of `count` elements are equal.
std::optional<Difference> compare(Dtype dtype, const void* got, const void* expected,
                                  std::size_t count, Tolerance tolerance);

// The size of a typical element of reals: their root mean square, at most ten times the median of
// those that are not 0, so that a few huge ones hide nothing. Infinities and NaN do not count. 0 of
// integers, and where all are 0.
double magnitude_of(Dtype dtype, const void* data, std::size_t count);

// Whether all are a NaN, of reals.
bool is_all_nan(Dtype dtype, const void* data, std::size_t count);

// The largest |got - expected|; infinite where only one of two is finite, or a NaN.
double largest_difference(Dtype dtype, const void* got, const void* expected, std::size_t count);

// Whether an expected element equals an element whose bytes are all `poison`. That poison then
// cannot distinguish an unwritten element from a correct one.
bool hides_poison(Dtype dtype, const void* expected, std::size_t count, std::uint8_t poison,
                  Tolerance tolerance);

// The first element whose bytes are all `poison`.
std::optional<std::size_t> find_poison(Dtype dtype, const void* data, std::size_t count,
                                       std::uint8_t poison);

// "[3,17]" of a row-major array; "" for fewer than two dimensions.
std::string multi_index_text(std::size_t flat, const std::vector<std::int64_t>& extents);
std::string element_text(Dtype dtype, const void* data, std::size_t index);

}  // namespace purlin::measure
