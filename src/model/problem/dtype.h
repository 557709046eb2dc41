// SPDX-License-Identifier: Apache-2.0
// Element types of kernel arguments.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace purlin {

enum class Dtype {
  kF16,
  kBf16,
  kF32,
  kF64,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kF8E4m3,  // no infinity: beyond 448 is a NaN, as the hardware has it
  kF8E5m2,
};

std::size_t size_of(Dtype dtype);
std::string_view name_of(Dtype dtype);                        // "f32"
std::optional<Dtype> dtype_from_name(std::string_view name);  // also "float", "half", "int", …
bool is_floating(Dtype dtype);
// What two roundings of nearly the same value may differ by, relative to it, with a reserve: 0.001
// of f16. 0 of types that are finer than sums of f32, and of integers.
double rounding_rtol(Dtype dtype);
// Reads or writes one element as a double; f16 and bf16 are rounded to nearest even on writing.
double load_element(Dtype dtype, const void* address);
void store_element(Dtype dtype, void* address, double value);

}  // namespace purlin
