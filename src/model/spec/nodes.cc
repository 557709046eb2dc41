// SPDX-License-Identifier: Apache-2.0
#include "model/spec/nodes.h"

#include "base/text.h"
#include "model/expression/parameter.h"

#include <algorithm>
#include <cmath>

namespace purlin::spec_nodes {

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  if (!near.empty()) return fmt::format("; did you mean '{}'?", near);
  return candidates.empty() ? "" : fmt::format("; there are {}", join(candidates, ", "));
}

Status check_name(const Toml& node, std::string_view name) {
  if (!is_identifier(name))
    return node.complain(
        fmt::format("'{}' is no name: letters, digits and '_', not starting with a digit", name));
  const Result<Expression> parsed = Expression::parse(name);
  if (!parsed.is_ok() || parsed->names().size() != 1)
    return node.complain(fmt::format("'{}' is a word of the expression language; rename it", name));
  if (starts_with(name, "device_"))
    return node.complain(fmt::format("'{}': names that begin with 'device_' are kept", name));
  return Status::ok();
}

Status check_label(const Toml& node, std::string_view key, std::string_view label) {
  const bool good = !label.empty() && label.size() <= 100 && label[0] != '.' &&
                    std::all_of(label.begin(), label.end(), [](char c) {
                      return is_identifier(std::string("a") + c) || c == '-' || c == '.';
                    });
  if (good) return Status::ok();
  return node.complain(
      fmt::format("'{}' must be 1 to 100 letters, digits, '_', '-' or '.', not '{}'", key, label));
}

Result<Value> to_value(const Toml& node) {
  if (node.integer() != nullptr) return Value(*node.integer());
  if (node.boolean() != nullptr) return Value(*node.boolean());
  if (node.string() != nullptr) return Value(*node.string());
  if (node.real() != nullptr && std::isfinite(*node.real())) return Value(*node.real());
  return node.complain(
      fmt::format("a parameter's value is a number, a boolean or a text, not {}",
                  node.real() != nullptr ? std::string_view("inf or nan") : node.type_name()));
}

std::string literal(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return to_text(value);
  std::string quoted = "'";
  for (const char c : *text) quoted += (c == '\\' || c == '\'' ? "\\" : "") + std::string(1, c);
  return quoted + "'";
}

Result<SpecExpression> to_expression(const Toml& node, std::string_view what) {
  std::string text;
  if (node.string() != nullptr) {
    text = *node.string();
  } else if (node.integer() != nullptr) {
    text = std::to_string(*node.integer());
  } else {
    return node.complain(fmt::format("{} must be an expression in quotes or an integer, not {}",
                                     what, node.type_name()));
  }
  Result<Expression> parsed = Expression::parse(text);
  if (!parsed.is_ok())
    return node.complain(fmt::format("{}: '{}': {}", what, text, parsed.status().message()));
  return SpecExpression{*parsed, node.where()};
}

Result<std::vector<SpecExpression>> to_expressions(const Toml& node, std::string_view what,
                                                   std::size_t most) {
  std::vector<SpecExpression> out;
  if (node.array() == nullptr) {
    PURLIN_ASSIGN(SpecExpression only, to_expression(node, what));
    out.push_back(std::move(only));
    return out;
  }
  if (node.array()->empty() || node.array()->size() > most)
    return node.complain(
        fmt::format("{} must have 1 to {} entries, not {}", what, most, node.array()->size()));
  for (const Toml& item : *node.array()) {
    PURLIN_ASSIGN(SpecExpression expression, to_expression(item, what));
    out.push_back(std::move(expression));
  }
  return out;
}

Result<std::int64_t> to_extent(const Toml& node, std::string_view name) {
  if (node.integer() == nullptr || *node.integer() < 1)
    return node.complain(fmt::format("extent of '{}' must be a positive integer", name));
  return *node.integer();
}

}  // namespace purlin::spec_nodes
