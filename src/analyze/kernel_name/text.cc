// SPDX-License-Identifier: Apache-2.0
#include "analyze/kernel_name/text.h"

#include "base/text.h"
#include "model/problem/problem.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace purlin::analyze {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";

}  // namespace

std::size_t skip_brackets(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(' || c == '<' || c == '{' || c == '[') ++depth;
    const bool arrow = c == '>' && at > 0 && text[at - 1] == '-';
    if ((c == ')' || c == '>' || c == '}' || c == ']') && !arrow && --depth == 0) return at + 1;
  }
  return text.size();
}

NameParts take_apart(std::string_view text) {
  NameParts parts;
  std::string enclosing;  // arguments of the class that the last component belongs to
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '(') {
      if (!starts_with(text.substr(at), kAnonymous)) break;
      parts.name += kAnonymous;
      at += kAnonymous.size();
    } else if (c == '<') {
      const std::size_t end = skip_brackets(text, at);
      parts.arguments =
          text.substr(at + 1, end - at - (end < text.size() || text.back() == '>' ? 2 : 1));
      at = end;
    } else if (c == ' ') {  // what stood before was a return type
      parts.name.clear();
      parts.arguments.clear();
      begin = ++at;
    } else {
      if (c == ':' && !parts.arguments.empty()) enclosing = std::exchange(parts.arguments, "");
      parts.name += c;
      ++at;
    }
  }
  parts.whole = text.substr(begin, at - begin);
  // A call operator is named for the class it belongs to.
  if (constexpr std::string_view kCall = "::operator"; ends_with(parts.name, kCall)) {
    parts.name.erase(parts.name.size() - kCall.size());
    parts.arguments = enclosing;
  }
  return parts;
}

std::vector<std::string_view> split_arguments(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    if (text[at] == ',') {
      out.push_back(trim(text.substr(begin, at - begin)));
      begin = ++at;
    } else if (text[at] == '<' || text[at] == '(' || text[at] == '{') {
      at = skip_brackets(text, at);
    } else {
      ++at;
    }
  }
  out.push_back(trim(text.substr(begin)));
  return out;
}

std::string without_namespaces(std::string_view name) {
  const std::size_t colons = name.rfind("::");
  return std::string(colons == std::string_view::npos ? name : name.substr(colons + 2));
}

namespace {

// What C++ sources call element types, without "__" and the vendor's "nv_", "hip_" or "rocblas_".
struct TypeSpelling {
  std::string_view name, dtype;
};
constexpr TypeSpelling kTypeSpellings[] = {{"BFloat16", "bf16"},
                                           {"bfloat16", "bf16"},
                                           {"bfloat16_t", "bf16"},
                                           {"hip_bfloat16", "bf16"},
                                           {"Half", "f16"},
                                           {"half", "f16"},
                                           {"half_t", "f16"},
                                           {"fp8_e4m3", "f8e4m3"},
                                           {"fp8_e5m2", "f8e5m2"},
                                           {"fp4_e2m1", "f4e2m1"},
                                           {"fp6_e2m3", "f6e2m3"},
                                           {"fp6_e3m2", "f6e3m2"},
                                           {"Float8_e4m3", "f8e4m3"},
                                           {"Float8_e5m2", "f8e5m2"},
                                           {"Float4_e2m1", "f4e2m1"},
                                           {"cuComplex", "c64"},
                                           {"cuFloatComplex", "c64"},
                                           {"hipFloatComplex", "c64"},
                                           {"hipComplex", "c64"},
                                           {"cuDoubleComplex", "c128"},
                                           {"hipDoubleComplex", "c128"}};

// "" for what is none of them. Packs of two and four are of their element: "bfloat162", "float4";
// packs of integers often hold bytes of another type.
std::string_view spelled_type(std::string_view name) {
  for (const std::string_view prefix : {"__", "nv_", "hip_", "rocblas_"})
    if (starts_with(name, prefix)) name.remove_prefix(prefix.size());
  // "fp8_e4m3_fnuz", "Float8_e4m3fn", "fp8x2_e4m3" differ in what they do with NaN, or are packs.
  if (const std::size_t e = name.find("_e"); e != std::string_view::npos)
    name = name.substr(0, std::min(name.size(), e + 5));
  for (const TypeSpelling& one : kTypeSpellings)
    if (one.name == name) return one.dtype;
  if (!ends_with(name, "2") && !ends_with(name, "4") && !ends_with(name, "8")) return "";
  const std::string_view element = name.substr(0, name.size() - 1);
  if (element == "float") return "f32";
  if (element == "double") return "f64";
  if (element == "half") return "f16";
  return element == "bfloat16" ? "bf16" : "";
}

}  // namespace

std::string type_name(std::string_view type) {
  const NameParts parts = take_apart(type);
  const std::string name = without_namespaces(parts.name);
  if (const std::string_view dtype = spelled_type(name); !dtype.empty()) return std::string(dtype);
  if (name == "complex") return trim(parts.arguments) == "double" ? "c128" : "c64";
  return name;
}

std::string_view without_cast(std::string_view argument) {
  if (starts_with(argument, "(") && !starts_with(argument, kAnonymous))
    argument = trim(argument.substr(skip_brackets(argument, 0)));
  return argument;
}

std::vector<std::string_view> arguments_of(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string_view::npos; ++at) {
    const std::size_t open = at + name.size();
    if (open >= text.size() || text[open] != '<') continue;
    const std::size_t end = skip_brackets(text, open);
    return split_arguments(text.substr(open + 1, end - open - (text[end - 1] == '>' ? 2 : 1)));
  }
  return {};
}

std::string short_argument(std::string_view argument) {
  argument = without_cast(argument);
  const std::string name = type_name(argument);
  return name.empty() ? std::string(argument) : name;
}

namespace {

bool is_wrapper(std::string_view name) {
  constexpr std::string_view kWrappers[] = {
      "gpu_kernel_impl", "gpu_kernel_impl_nocast", "ReduceOp",     "func_wrapper_t",
      "BinaryFunctor",   "AUnaryFunctor",          "BUnaryFunctor"};
  return std::find(std::begin(kWrappers), std::end(kWrappers), name) != std::end(kWrappers);
}

// Whether a template argument is the operation rather than a type, a number or an accessor.
bool is_operation(std::string_view argument) {
  if (argument.empty() || std::isalpha(static_cast<unsigned char>(argument[0])) == 0) return false;
  const std::string name = without_namespaces(take_apart(argument).name);
  if (is_wrapper(name)) return true;
  for (std::string_view word : {"Functor", "functor", "kernel", "Kernel", "Ops", "impl", "lambda"})
    if (name.find(word) != std::string::npos) return true;
  return argument.find("{lambda") != std::string_view::npos;
}

// "CUDAFunctor_add", "MulFunctor", "direct_copy_kernel_cuda", "GeluCUDAKernelImpl", "MeanOps": what
// they do, without how they are built.
std::string plain_operation(std::string name) {
  for (std::string_view prefix : {"CUDAFunctor_", "CUDAFunctor", "launch_"})
    if (starts_with(name, prefix) && name.size() > prefix.size()) name.erase(0, prefix.size());
  for (std::string_view suffix : {"CUDAKernelImpl", "_kernel_impl", "_kernel_cuda", "_functor",
                                  "MathFunctor", "Functor", "_kernel", "Ops"}) {
    if (!ends_with(name, suffix) || name.size() == suffix.size()) continue;
    name.erase(name.size() - suffix.size());
    break;
  }
  // MulScalar -> mul_scalar, as PyTorch's own functions are called.
  std::string words;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool begins = std::isupper(c) != 0 && i > 0 &&
                        std::isupper(static_cast<unsigned char>(name[i - 1])) == 0 &&
                        name[i - 1] != '_';
    if (begins) words += '_';
    words += static_cast<char>(std::tolower(c));
  }
  return words;
}

// The first argument where that is an element type, else "".
std::string first_type(std::string_view arguments) {
  std::string type = type_name(split_arguments(arguments)[0]);
  return dtype_of(type).empty() ? std::string() : type;
}

// The bound is against names made to nest without end.
Operation operation_within(std::string_view arguments, int bound) {
  for (std::string_view argument : split_arguments(arguments)) {
    if (!is_operation(argument)) continue;
    const NameParts parts = take_apart(argument);
    const std::string name = without_namespaces(parts.name);
    if (is_wrapper(name) && bound > 0) {
      Operation inner = operation_within(parts.arguments, bound - 1);
      if (!inner.name.empty()) {
        // MulFunctor<float> in BinaryFunctor<bf16, …>: computed in float, stored in bf16.
        if (name.find("Functor") != std::string::npos)
          if (std::string stored = first_type(parts.arguments); !stored.empty())
            inner.type = stored;
        return inner;
      }
    }
    // The element type: the first template argument if that is a type, else the innermost lambda's.
    std::string type;
    const std::size_t lambda = argument.rfind("{lambda(");
    if (!parts.arguments.empty()) {
      type = first_type(parts.arguments);
    } else if (lambda != std::string_view::npos) {
      const std::size_t open = lambda + 7;
      const std::size_t close = skip_brackets(argument, open);
      if (close > open + 2) type = first_type(argument.substr(open + 1, close - open - 2));
      if (type == "int") type.clear();  // an index, not an element
    }
    return {plain_operation(name), type};
  }
  return {};
}

}  // namespace

Operation operation_in(std::string_view arguments) { return operation_within(arguments, 8); }

}  // namespace purlin::analyze
