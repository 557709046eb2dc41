// SPDX-License-Identifier: Apache-2.0
// Taking C++ names apart without understanding C++: brackets, template arguments, namespaces.
// Private to analyze/kernel_name. Pure functions over foreign text; nothing recurses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace purlin::analyze {

// The end of what opens at `at`, one past its closing bracket; the text's end where none closes it.
std::size_t skip_brackets(std::string_view text, std::size_t at);

struct NameParts {
  std::string name;        // "at::native::reduce_kernel"
  std::string arguments;   // between the last component's < and >
  std::string_view whole;  // name and arguments, without return type and parameters
};

// Takes "void a::b<c>(d)" apart. Also used for template arguments such as "f(x)::{lambda()#1}",
// which then stop at the first parameter list: the function the lambda stands in.
NameParts take_apart(std::string_view text);

std::vector<std::string_view> split_arguments(std::string_view text);
// The arguments of the first "NAME<…>" in a text, {} without one.
std::vector<std::string_view> arguments_of(std::string_view text, std::string_view name);
std::string without_namespaces(std::string_view name);
std::string type_name(std::string_view type);  // "c10::BFloat16" -> "bf16", "a::b<c>" -> "b"
std::string_view without_cast(std::string_view argument);  // "(Kind)2" -> "2"
// A template argument in a label: "c10::BFloat16" -> "bf16", "a::b<c::d, 4>" -> "b",
// "f()::{lambda…" -> "f", "(Kind)2" -> "2".
std::string short_argument(std::string_view argument);

// What a PyTorch elementwise, reduction or multi-tensor kernel applies.
struct Operation {
  std::string name;  // "add"; "" where the arguments name none
  std::string type;  // "bf16", "float", "" unknown
};
Operation operation_in(std::string_view arguments);

}  // namespace purlin::analyze
