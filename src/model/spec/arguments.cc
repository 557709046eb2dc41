// SPDX-License-Identifier: Apache-2.0
#include "model/spec/arguments.h"

#include "base/text.h"
#include "model/expression/parameter.h"
#include "model/spec/nodes.h"

#include <algorithm>
#include <cmath>

namespace purlin {
namespace {

using namespace spec_nodes;

// A known word, so that a misspelt word does not create separate keys.
Status read_layout(const Toml& node, Argument& argument) {
  static const std::vector<std::string> words = {"row",   "column", "strided", "nchw", "nhwc",
                                                 "ncdhw", "ndhwc",  "kcrs",    "krsc"};
  if (argument.role == Argument::Role::kScalar)
    return node.complain(fmt::format("scalar '{}' has no layout", argument.name));
  const std::string text = node.string() == nullptr ? "" : *node.string();
  constexpr std::string_view kBlocked = "blocked:";
  const bool blocked =
      starts_with(text, kBlocked) && is_identifier(std::string_view(text).substr(kBlocked.size()));
  if (!blocked && std::find(words.begin(), words.end(), text) == words.end())
    return node.complain(fmt::format("layout of '{}' is none of {}, or blocked:NAME{}",
                                     argument.name, join(words, ", "), suggestion(text, words)));
  argument.layout = text;
  return Status::ok();
}

// "uniform(-1, 1)", "normal(0, 1)", "constant(3)", "iota".
Status read_fill(const Toml& node, Argument& argument) {
  constexpr const char* kForms = "uniform(low, high), normal(mean, sd), constant(c) or iota";
  if (node.string() == nullptr)
    return node.complain(fmt::format("fill must be a text: {}", kForms));
  const std::string_view text = trim(*node.string());
  const std::size_t open = text.find('(');
  const std::string_view kind = trim(text.substr(0, open));
  std::vector<double> numbers;
  bool good = true;
  if (open != std::string_view::npos) {
    good = ends_with(text, ")");
    const std::string inside(text.substr(open + 1, text.size() - open - 2));
    for (const std::string& part : split(good ? inside : "", ',')) {
      const auto number = parse_double(trim(part));
      good = good && number && std::isfinite(*number);
      numbers.push_back(number.value_or(0));
    }
  }
  using Fill = Argument::Fill;
  const auto is = [&](std::string_view name, std::size_t count) {
    return kind == name && numbers.size() == count;
  };
  if (is("uniform", 2)) {
    argument.fill = Fill::kUniform;
    good = good && numbers[0] <= numbers[1];
  } else if (is("normal", 2)) {
    argument.fill = Fill::kNormal;
    good = good && numbers[1] >= 0;
  } else if (is("constant", 1)) {
    argument.fill = Fill::kConstant;
  } else if (is("iota", 0)) {
    argument.fill = Fill::kIota;
  } else {
    good = false;
  }
  if (!good)
    return node.complain(fmt::format("fill '{}' is not one of {}", *node.string(), kForms));
  argument.fill_a = numbers.empty() ? 0 : numbers[0];
  argument.fill_b = numbers.size() < 2 ? 0 : numbers[1];
  return Status::ok();
}

// {box = ["BM", 64], swizzle = 128}
Status read_tensor_map(const Toml& node, Argument& argument) {
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "tensor_map"));
  if (argument.role == Argument::Role::kScalar)
    return node.complain(fmt::format("scalar '{}' has no tensor map", argument.name));
  TensorMapSpec map;
  PURLIN_ASSIGN(const Toml* box, table.required("box"));
  PURLIN_ASSIGN(map.box, to_expressions(*box, "box", 5));
  if (map.box.size() != argument.shape.size())
    return box->complain(fmt::format("box must have the {} extents of '{}', not {}",
                                     argument.shape.size(), argument.name, map.box.size()));
  if (const Toml* swizzle = table.optional("swizzle")) {
    PURLIN_ASSIGN(map.swizzle, to_expression(*swizzle, "swizzle"));
  } else {
    PURLIN_ASSIGN(map.swizzle.expression, Expression::parse("0"));
  }
  PURLIN_TRY(table.finish());
  argument.tensor_map = std::move(map);
  return Status::ok();
}

}  // namespace

Result<Argument> read_argument(const Toml& node) {
  using Role = Argument::Role;
  PURLIN_ASSIGN(TomlTable table, TomlTable::of(node, "[[arguments]]"));
  Argument argument;
  PURLIN_ASSIGN(argument.name, table.string("name"));
  if (!is_identifier(argument.name))
    return node.find("name")->complain(fmt::format("'{}' is no name", argument.name));
  PURLIN_ASSIGN(const std::string role, table.string("role"));
  const std::vector<std::string> roles = {"input", "output", "inout", "scalar", "scratch"};
  const auto found = std::find(roles.begin(), roles.end(), role);
  if (found == roles.end())
    return node.find("role")->complain(
        fmt::format("unknown role '{}'; there are {}", role, join(roles, ", ")));
  argument.role = static_cast<Role>(found - roles.begin());
  PURLIN_ASSIGN(const std::string dtype, table.string("dtype"));
  const auto known = dtype_from_name(dtype);
  if (!known)
    return node.find("dtype")->complain(fmt::format(
        "unknown dtype '{}'; there are f16, bf16, f8e4m3, f8e5m2, f32, f64, i8 to i64, u8 to u64",
        dtype));
  argument.dtype = *known;
  const Toml* shape = table.optional("shape");
  const Toml* value = table.optional("value");
  const Toml* fill = table.optional("fill");
  const Toml* layout = table.optional("layout");
  const Toml* tensor_map = table.optional("tensor_map");
  PURLIN_TRY(table.finish());
  const bool scalar = argument.role == Role::kScalar;
  if (scalar && value == nullptr)
    return node.complain(fmt::format("scalar '{}' needs value = \"…\"", argument.name));
  if (scalar && shape != nullptr)
    return shape->complain(fmt::format("scalar '{}' has no shape", argument.name));
  if (!scalar && shape == nullptr)
    return node.complain(
        fmt::format("buffer '{}' needs shape = [\"…\"], its extents", argument.name));
  if (!scalar && value != nullptr)
    return value->complain(fmt::format(
        "'value' is for scalars; to fill '{}' use fill = \"constant(0)\"", argument.name));
  if (fill != nullptr && argument.role != Role::kInput && argument.role != Role::kInOut)
    return fill->complain(
        fmt::format("'fill' is for role input and inout; '{}' is {}", argument.name, role));
  if (scalar) {
    PURLIN_ASSIGN(argument.value, to_expression(*value, "value"));
  } else {
    PURLIN_ASSIGN(argument.shape, to_expressions(*shape, "shape", 8));
  }
  if (fill != nullptr) PURLIN_TRY(read_fill(*fill, argument));
  if (layout != nullptr) PURLIN_TRY(read_layout(*layout, argument));
  if (tensor_map != nullptr) PURLIN_TRY(read_tensor_map(*tensor_map, argument));
  return argument;
}

}  // namespace purlin
