// SPDX-License-Identifier: Apache-2.0
// What does one thing to every element: arithmetic, comparison, conversion, filling, copying.
#include "model/problem/rules.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace purlin {
namespace {

// The extents two tensors have when broadcast against one another.
bool broadcast(Shape& into, const Shape& other) {
  if (other.size() > into.size()) into.insert(into.begin(), other.size() - into.size(), 1);
  for (std::size_t i = 0; i < other.size(); ++i) {
    std::int64_t& extent = into[into.size() - 1 - i];
    const std::int64_t of_other = other[other.size() - 1 - i];
    if (extent != of_other && extent != 1 && of_other != 1) return false;
    if (extent == 1) extent = of_other;
  }
  return true;
}

// The wider of two element types, as PyTorch promotes them.
std::string_view promoted(std::string_view a, std::string_view b) {
  constexpr std::string_view kOrder[] = {"bool", "u8",  "i8",  "i16", "i32", "i64",
                                         "bf16", "f16", "f32", "f64", "c64", "c128"};
  if ((a == "bf16" && b == "f16") || (a == "f16" && b == "bf16")) return "f32";
  const auto rank = [&](std::string_view type) -> std::ptrdiff_t {
    return std::find(std::begin(kOrder), std::end(kOrder), type) - std::begin(kOrder);
  };
  if (std::max(rank(a), rank(b)) == std::ssize(kOrder)) return a == b ? a : "";
  return rank(a) < rank(b) ? b : a;
}

void add_bytes(Problem& out, const char* name, double bytes, double expected) {
  if (bytes != expected)
    out.dimensions.push_back({name, static_cast<std::int64_t>(std::llround(bytes))});
}

// A Triton kernel's arguments are its tensors, the last of them what it writes.
Problem read_triton(const OpInputs& inputs, const OpRule& rule) {
  Problem out;
  out.op_class = rule.op_class;
  std::int64_t most = 0;
  double read = 0, last = 0;
  int tensors = 0;
  bool sized = true;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    const auto elements = inputs.elements(i);
    if (!elements) continue;
    if (*elements > most || out.dtype.empty()) out.dtype = inputs.dtype(i);
    most = std::max(most, *elements);
    const double size = bytes_per_element(inputs.dtype(i));
    sized = sized && size > 0;
    read += last;
    last = static_cast<double>(*elements) * size;
    ++tensors;
  }
  if (tensors == 0) return out;
  out.dimensions = {{"n", most}};
  if (tensors > 1) out.dimensions.push_back({"inputs", tensors - 1});
  if (sized && tensors > 1) {
    add_bytes(out, "read", read, -1);
    add_bytes(out, "write", last, -1);
  }
  return out;
}

}  // namespace

Problem read_elementwise(const OpInputs& inputs, const OpRule& rule) {
  const int kind = rule.at[0];
  if (kind == kTritonKernel) return read_triton(inputs, rule);
  Problem out;
  out.op_class = rule.op_class;
  Shape shape;
  std::string_view dtype;
  std::int64_t read = 0;
  double read_bytes = 0;
  int tensors = 0, first = -1;
  bool typed = true;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    if (!inputs.is_tensor(i)) continue;
    if (first < 0) first = i;
    const auto elements = elements_of(inputs.shape(i));
    if (!elements || !broadcast(shape, inputs.shape(i))) return out;
    if (kind == kOverwrites && i == first) continue;  // written, not read
    if (inputs.shape(i).empty()) continue;            // a number on the device: nothing to read
    dtype = tensors == 0 ? inputs.dtype(i) : promoted(dtype, inputs.dtype(i));
    const double size = bytes_per_element(inputs.dtype(i));
    typed = typed && size > 0;
    read_bytes += size * static_cast<double>(*elements);
    const auto sum = read + *elements;
    if (!elements_of({sum})) return out;
    read = sum;
    ++tensors;
  }
  if (first < 0) return out;
  const auto written = elements_of(shape);
  if (!written) return out;
  std::string_view result = dtype;
  if (kind == kTruth) result = "bool";
  if (kind == kOverwrites) result = inputs.dtype(first);
  if (tensors == 0) {
    dtype = result = inputs.dtype(first);
    // What makes numbers out of nothing, or of one number.
  }
  out.dtype = dtype;
  out.dimensions = {{"n", *written}, {"inputs", tensors}};
  if (*written != 0 && read != tensors * *written) out.dimensions.push_back({"in", read});
  const double size = bytes_per_element(dtype), result_size = bytes_per_element(result);
  if (size <= 0 || result_size <= 0) return out;
  if (typed) add_bytes(out, "read", read_bytes, size * static_cast<double>(read));
  const double count = static_cast<double>(*written);
  add_bytes(out, "write", (result_size + (kind == kWithMask ? 1 : 0)) * count, size * count);
  return out;
}

}  // namespace purlin
