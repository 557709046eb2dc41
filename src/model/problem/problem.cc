// SPDX-License-Identifier: Apache-2.0
#include "model/problem/problem.h"

#include "base/text.h"

#include <cctype>

namespace purlin {
namespace {

constexpr std::size_t kMaxDimensions = 32;
constexpr std::size_t kMaxNameLength = 32;

struct ElementType {
  std::string_view written, dtype;
  double bytes;
};

// As ATen's, XLA's, NCCL's and C++'s spelling has it. The first row of a dtype gives its size.
constexpr ElementType kElementTypes[] = {
    {"f32", "f32", 4},
    {"float", "f32", 4},
    {"c10::Float", "f32", 4},
    {"Float", "f32", 4},
    {"float32", "f32", 4},
    {"f64", "f64", 8},
    {"double", "f64", 8},
    {"Double", "f64", 8},
    {"float64", "f64", 8},
    {"bf16", "bf16", 2},
    {"c10::BFloat16", "bf16", 2},
    {"BFloat16", "bf16", 2},
    {"bfloat16", "bf16", 2},
    {"__nv_bfloat16", "bf16", 2},
    {"f16", "f16", 2},
    {"c10::Half", "f16", 2},
    {"Half", "f16", 2},
    {"half", "f16", 2},
    {"float16", "f16", 2},
    {"__half", "f16", 2},
    {"f8e4m3", "f8e4m3", 1},
    {"c10::Float8_e4m3fn", "f8e4m3", 1},
    {"c10::Float8_e4m3fnuz", "f8e4m3", 1},
    {"Float8_e4m3fn", "f8e4m3", 1},
    {"Float8_e4m3fnuz", "f8e4m3", 1},
    {"float8_e4m3fn", "f8e4m3", 1},
    {"f8e4m3fn", "f8e4m3", 1},
    {"f8e4m3fnuz", "f8e4m3", 1},
    {"f8e5m2", "f8e5m2", 1},
    {"c10::Float8_e5m2", "f8e5m2", 1},
    {"c10::Float8_e5m2fnuz", "f8e5m2", 1},
    {"Float8_e5m2", "f8e5m2", 1},
    {"Float8_e5m2fnuz", "f8e5m2", 1},
    {"float8_e5m2", "f8e5m2", 1},
    {"f8e5m2fnuz", "f8e5m2", 1},
    {"f8e8m0", "f8e8m0", 1},
    {"c10::Float8_e8m0fnu", "f8e8m0", 1},
    {"f4e2m1", "f4e2m1", 0.5},
    {"f4e2m1fn", "f4e2m1", 0.5},
    {"c10::Float4_e2m1fn_x2", "f4e2m1", 0.5},
    {"Float4_e2m1fn_x2", "f4e2m1", 0.5},
    {"float4_e2m1fn_x2", "f4e2m1", 0.5},
    {"f6e2m3", "f6e2m3", 0.75},
    {"f6e3m2", "f6e3m2", 0.75},
    {"i8", "i8", 1},
    {"s8", "i8", 1},
    {"signed char", "i8", 1},
    {"char", "i8", 1},
    {"Char", "i8", 1},
    {"int8", "i8", 1},
    {"int8_t", "i8", 1},
    {"c10::qint8", "i8", 1},
    {"u8", "u8", 1},
    {"unsigned char", "u8", 1},
    {"Byte", "u8", 1},
    {"uint8", "u8", 1},
    {"uint8_t", "u8", 1},
    {"c10::quint8", "u8", 1},
    {"i16", "i16", 2},
    {"s16", "i16", 2},
    {"short", "i16", 2},
    {"short int", "i16", 2},
    {"Short", "i16", 2},
    {"u16", "u16", 2},
    {"unsigned short", "u16", 2},
    {"i32", "i32", 4},
    {"s32", "i32", 4},
    {"int", "i32", 4},
    {"Int", "i32", 4},
    {"int32", "i32", 4},
    {"int32_t", "i32", 4},
    {"c10::qint32", "i32", 4},
    {"u32", "u32", 4},
    {"unsigned int", "u32", 4},
    {"uint32_t", "u32", 4},
    {"i64", "i64", 8},
    {"s64", "i64", 8},
    {"long", "i64", 8},
    {"long int", "i64", 8},
    {"long long", "i64", 8},
    {"Long", "i64", 8},
    {"int64", "i64", 8},
    {"int64_t", "i64", 8},
    {"u64", "u64", 8},
    {"unsigned long", "u64", 8},
    {"unsigned long long", "u64", 8},
    {"uint64_t", "u64", 8},
    {"i4", "i4", 0.5},
    {"s4", "i4", 0.5},
    {"u4", "u4", 0.5},
    {"bool", "bool", 1},
    {"Bool", "bool", 1},
    {"pred", "bool", 1},
    {"c64", "c64", 8},
    {"c10::complex<float>", "c64", 8},
    {"ComplexFloat", "c64", 8},
    {"c128", "c128", 16},
    {"c10::complex<double>", "c128", 16},
    {"ComplexDouble", "c128", 16},
};

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxNameLength) return false;
  if (std::isalpha(static_cast<unsigned char>(text[0])) == 0) return false;
  for (char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  return true;
}

}  // namespace

std::int64_t Problem::operator[](std::string_view name) const {
  for (const Dimension& dimension : dimensions)
    if (dimension.name == name) return dimension.value;
  return 0;
}

std::string to_text(const std::vector<Dimension>& dimensions) {
  std::string out;
  for (const Dimension& dimension : dimensions) {
    if (!out.empty()) out += ',';
    out += dimension.name + "=" + std::to_string(dimension.value);
  }
  return out;
}

std::vector<Dimension> dimensions_from_text(std::string_view text) {
  std::vector<Dimension> out;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || out.size() == kMaxDimensions) return {};
    const auto value = parse_int(part.substr(equals + 1));
    if (!is_name(part.substr(0, equals)) || !value) return {};
    out.push_back({std::string(part.substr(0, equals)), *value});
    if (comma == std::string_view::npos) return out;
    text.remove_prefix(comma + 1);
    if (text.empty()) return {};
  }
  return out;
}

std::string_view dtype_of(std::string_view framework_name) {
  for (const ElementType& type : kElementTypes)
    if (type.written == framework_name) return type.dtype;
  return "";
}

std::string_view floating_dtype_of(const std::vector<OpInput>& inputs) {
  std::string_view found;
  for (const OpInput& input : inputs) {
    const std::string_view dtype = dtype_of(input.dtype);
    if (dtype.find('f') == std::string_view::npos) continue;  // indices, lengths
    if (!found.empty() && found != dtype) return "";
    found = dtype;
  }
  return found;
}

double bytes_per_element(std::string_view dtype) {
  for (const ElementType& type : kElementTypes)
    if (type.dtype == dtype) return type.bytes;
  return 0;
}

}  // namespace purlin
