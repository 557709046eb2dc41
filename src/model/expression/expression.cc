// SPDX-License-Identifier: Apache-2.0
#include "model/expression/expression.h"

#include "model/expression/node.h"

#include <algorithm>
#include <cmath>

namespace purlin {
namespace {

class Evaluator {
 public:
  Evaluator(const std::vector<std::string>& names, const Expression::Lookup& lookup)
      : names_(names), lookup_(lookup) {}

  Result<Value> evaluate(const ExpressionNode& node) const {
    switch (node.kind) {
      case ExpressionKind::kLiteral:
        return node.literal;
      case ExpressionKind::kName: {
        const Value* value = lookup_(names_[node.name]);
        if (value == nullptr) return at(node, "unknown name '" + names_[node.name] + "'");
        return *value;
      }
      case ExpressionKind::kList:
        return at(node, "a list can only stand right of 'in'");
      case ExpressionKind::kAnd:
      case ExpressionKind::kOr: {
        for (std::size_t i = 0; i + 1 < node.children.size(); ++i) {
          PURLIN_ASSIGN(Value value, evaluate(node.children[i]));
          if (truthy(value) == (node.kind == ExpressionKind::kOr)) return value;
        }
        return evaluate(node.children.back());
      }
      case ExpressionKind::kConditional: {
        PURLIN_ASSIGN(const Value condition, evaluate(node.children[0]));
        return evaluate(node.children[truthy(condition) ? 1 : 2]);
      }
      case ExpressionKind::kCompare:
        return compare(node);
      case ExpressionKind::kNegate:
      case ExpressionKind::kPlus:
      case ExpressionKind::kNot: {
        PURLIN_ASSIGN(const Value operand, evaluate(node.children[0]));
        return located(node, apply_unary(node.kind, operand));
      }
      case ExpressionKind::kCall: {
        std::vector<Value> arguments;
        for (const ExpressionNode& child : node.children) {
          PURLIN_ASSIGN(Value value, evaluate(child));
          arguments.push_back(std::move(value));
        }
        return located(node, apply_function(node.function, arguments));
      }
      default:
        break;
    }
    PURLIN_ASSIGN(const Value left, evaluate(node.children[0]));
    PURLIN_ASSIGN(const Value right, evaluate(node.children[1]));
    return located(node, apply_binary(node.kind, left, right));
  }

 private:
  static Status at(const ExpressionNode& node, std::string_view text) {
    return error(Code::kInvalid, "column {}: {}", node.column, text);
  }
  template <class T>
  static Result<T> located(const ExpressionNode& node, Result<T> result) {
    if (result.is_ok()) return result;
    return at(node, result.status().message());
  }

  Result<Value> compare(const ExpressionNode& node) const {
    PURLIN_ASSIGN(Value left, evaluate(node.children[0]));
    for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
      const ExpressionNode& operand = node.children[i + 1];
      if (operand.kind == ExpressionKind::kList) {
        PURLIN_ASSIGN(const bool found, contains(node, operand, left));
        return Value(found == (node.comparisons[i] == ExpressionComparison::kIn));
      }
      PURLIN_ASSIGN(Value right, evaluate(operand));
      PURLIN_ASSIGN(const bool holds,
                    located(node, apply_comparison(node.comparisons[i], left, right)));
      if (!holds) return Value(false);
      left = std::move(right);
    }
    return Value(true);
  }

  Result<bool> contains(const ExpressionNode& node, const ExpressionNode& list,
                        const Value& value) const {
    bool found = false;  // every item is evaluated first, as in Python: an error in one is an error
    for (const ExpressionNode& item : list.children) {
      PURLIN_ASSIGN(const Value candidate, evaluate(item));
      PURLIN_ASSIGN(const bool same, located(node, apply_comparison(ExpressionComparison::kEqual,
                                                                    value, candidate)));
      found |= same;
    }
    return found;
  }

  const std::vector<std::string>& names_;
  const Expression::Lookup& lookup_;
};

}  // namespace

Expression::Expression() = default;
Expression::~Expression() = default;
Expression::Expression(const Expression&) = default;
Expression& Expression::operator=(const Expression&) = default;
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;

std::string Expression::enclosed() const {
  const bool alone = root_ != nullptr && root_->children.empty() && text_.front() != '(';
  return alone ? text_ : "(" + text_ + ")";
}

Result<Value> Expression::evaluate(const Lookup& lookup) const {
  if (empty()) return error(Code::kInvalid, "the expression is empty");
  return Evaluator(names_, lookup).evaluate(*root_);
}

Result<std::int64_t> Expression::evaluate_int(const Lookup& lookup) const {
  PURLIN_ASSIGN(const Value value, evaluate(lookup));
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* boolean = std::get_if<bool>(&value)) return std::int64_t{*boolean};
  const auto* real = std::get_if<double>(&value);
  if (real != nullptr && *real == std::floor(*real) && *real >= -0x1p63 && *real < 0x1p63)
    return static_cast<std::int64_t>(*real);
  return error(Code::kInvalid, "'{}' must be a whole number, not {}{}", text_, to_text(value),
               real != nullptr ? "; use // or ceil_div for whole division" : "");
}

Result<double> Expression::evaluate_double(const Lookup& lookup) const {
  PURLIN_ASSIGN(const Value value, evaluate(lookup));
  return to_double(value);
}

Result<bool> Expression::evaluate_bool(const Lookup& lookup) const {
  PURLIN_ASSIGN(const Value value, evaluate(lookup));
  return truthy(value);
}

void Scope::set(std::string_view name, Value value) {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found != values_.end()) {
    found->second = std::move(value);
  } else {
    values_.emplace_back(name, std::move(value));
  }
}

void Scope::add(const Config& config) {
  for (const auto& [name, value] : config.items()) set(name, value);
}

void Scope::add(const ProblemShape& shape) {
  for (const auto& [name, extent] : shape.items()) set(name, extent);
}

Expression::Lookup Scope::lookup() const {
  return [this](std::string_view name) { return find(name); };
}

const Value* Scope::find(std::string_view name) const {
  for (const auto& [held, value] : values_)
    if (held == name) return &value;
  return nullptr;
}

}  // namespace purlin
