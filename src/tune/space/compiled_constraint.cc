// SPDX-License-Identifier: Apache-2.0
#include "tune/space/compiled_constraint.h"

#include <cmath>

namespace purlin::tune {
namespace {

using Kind = Expression::Node::Kind;
using Comparison = Expression::Node::Comparison;

// Integers up to here are exact as reals; beyond, the expression itself decides.
constexpr std::int64_t kExact = std::int64_t{1} << 53;

bool to_real(const Number& number, double& out) {
  if (number.is_real) {
    out = number.real;
    return true;
  }
  out = static_cast<double>(number.integer);
  return number.integer >= -kExact && number.integer <= kExact;
}

bool integer_binary(Kind kind, std::int64_t a, std::int64_t b, Number& out) {
  std::int64_t result = 0;
  switch (kind) {
    case Kind::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return false;
      break;
    case Kind::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return false;
      break;
    case Kind::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return false;
      break;
    case Kind::kDivide:
      if (b == 0) return false;
      out = Number(static_cast<double>(a) / static_cast<double>(b));
      return true;
    case Kind::kFloorDivide:
      if (b <= 0) return false;
      result = a / b - (a % b < 0 ? 1 : 0);
      break;
    case Kind::kModulo:
      if (b <= 0) return false;
      result = a % b;
      if (result < 0) result += b;
      break;
    default:
      return false;
  }
  out = Number(result);
  return true;
}

bool real_binary(Kind kind, double a, double b, Number& out) {
  switch (kind) {
    case Kind::kAdd:
      out = Number(a + b);
      return true;
    case Kind::kSubtract:
      out = Number(a - b);
      return true;
    case Kind::kMultiply:
      out = Number(a * b);
      return true;
    case Kind::kDivide:
      out = Number(a / b);
      return b != 0;
    case Kind::kModulo: {
      if (b == 0) return false;
      double rest = std::fmod(a, b);
      if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
      out = Number(rest);
      return true;
    }
    default:
      return false;
  }
}

template <class T>
bool holds(Comparison comparison, T a, T b, bool& out) {
  switch (comparison) {
    case Comparison::kEqual:
      out = a == b;
      return true;
    case Comparison::kNotEqual:
      out = a != b;
      return true;
    case Comparison::kLess:
      out = a < b;
      return true;
    case Comparison::kLessEqual:
      out = a <= b;
      return true;
    case Comparison::kGreater:
      out = a > b;
      return true;
    case Comparison::kGreaterEqual:
      out = a >= b;
      return true;
    default:
      return false;
  }
}

bool compare_numbers(Comparison comparison, const Number& left, const Number& right, bool& out) {
  if (!left.is_real && !right.is_real) return holds(comparison, left.integer, right.integer, out);
  double a = 0, b = 0;
  return to_real(left, a) && to_real(right, b) && holds(comparison, a, b, out);
}

}  // namespace

std::optional<Number> Number::of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return Number(*integer);
  if (const auto* boolean = std::get_if<bool>(&value)) return Number(std::int64_t{*boolean});
  if (const auto* real = std::get_if<double>(&value)) return Number(*real);
  return std::nullopt;
}

CompiledConstraint::CompiledConstraint(const Expression& expression, const Meanings& meaning,
                                       std::size_t innermost)
    : expression_(expression) {
  root_ = add(*expression_.root(), meaning, innermost);
  for (Step& step : steps_)
    for (const std::size_t child : step.children)
      steps_[child].hoisted = step.varies && !steps_[child].varies;
}

std::size_t CompiledConstraint::add(const Node& node, const Meanings& meaning,
                                    std::size_t innermost) {
  Step step;
  step.node = &node;
  if (node.kind == Kind::kLiteral || node.kind == Kind::kName) {
    Meaning known;
    if (node.kind == Kind::kLiteral) {
      known.constant = Number::of(node.literal);
    } else {
      known = meaning(expression_.names()[node.name]);
    }
    if (known.slot) {
      step.slot = *known.slot;
      step.varies = step.slot == innermost;
    } else if (known.constant) {
      step.folded = true;
      step.value = *known.constant;
    } else {
      compiled_ = false;
    }
  }
  for (const Node& child : node.children) {
    step.children.push_back(add(child, meaning, innermost));
    step.varies |= steps_[step.children.back()].varies;
  }
  steps_.push_back(std::move(step));
  return steps_.size() - 1;
}

Verdict CompiledConstraint::evaluate(const Number* slots) {
  Number result;
  slots_ = slots;
  if (!compiled_ || !run(root_, result)) return Verdict::kUnknown;
  return result.truthy() ? Verdict::kTrue : Verdict::kFalse;
}

bool CompiledConstraint::run(std::size_t index, Number& out) {
  Step& step = steps_[index];
  if (step.node->kind == Kind::kName && !step.folded) {
    out = slots_[step.slot];
    return true;
  }
  if (!step.folded && !step.hoisted) return compute(step, out);
  if (!step.folded && step.round != round_) {
    step.round = round_;
    step.known = compute(step, step.value);
  }
  out = step.value;
  return step.folded || step.known;
}

bool CompiledConstraint::compute(const Step& step, Number& out) {
  const Node& node = *step.node;
  Number a, b;
  switch (node.kind) {
    case Kind::kAnd:
    case Kind::kOr:
      for (const std::size_t child : step.children) {
        if (!run(child, out)) return false;
        if (out.truthy() == (node.kind == Kind::kOr)) return true;
      }
      return true;
    case Kind::kNot:
      if (!run(step.children[0], a)) return false;
      out = Number(std::int64_t{!a.truthy()});
      return true;
    case Kind::kPlus:
      return run(step.children[0], out);
    case Kind::kNegate:
      if (!run(step.children[0], a)) return false;
      if (!a.is_real) return integer_binary(Kind::kSubtract, 0, a.integer, out);
      out = Number(-a.real);
      return true;
    case Kind::kConditional:
      if (!run(step.children[0], a)) return false;
      return run(step.children[a.truthy() ? 1 : 2], out);
    case Kind::kCompare: {
      bool result = false;
      if (!compare(step, result)) return false;
      out = Number(std::int64_t{result});
      return true;
    }
    case Kind::kCall:
      return call(step, out);
    case Kind::kAdd:
    case Kind::kSubtract:
    case Kind::kMultiply:
    case Kind::kDivide:
    case Kind::kFloorDivide:
    case Kind::kModulo: {
      if (!run(step.children[0], a) || !run(step.children[1], b)) return false;
      if (!a.is_real && !b.is_real) return integer_binary(node.kind, a.integer, b.integer, out);
      double x = 0, y = 0;
      return to_real(a, x) && to_real(b, y) && real_binary(node.kind, x, y, out);
    }
    default:
      return false;
  }
}

bool CompiledConstraint::compare(const Step& step, bool& out) {
  Number left, right;
  if (!run(step.children[0], left)) return false;
  for (std::size_t i = 0; i < step.node->comparisons.size(); ++i) {
    const Comparison comparison = step.node->comparisons[i];
    const std::size_t operand = step.children[i + 1];
    if (steps_[operand].node->kind == Kind::kList) {
      bool found = false;
      for (const std::size_t item : steps_[operand].children) {
        bool same = false;
        if (!run(item, right) || !compare_numbers(Comparison::kEqual, left, right, same))
          return false;
        found |= same;
      }
      out = found == (comparison == Comparison::kIn);
      return true;  // a list is the last operand
    }
    if (!run(operand, right) || !compare_numbers(comparison, left, right, out)) return false;
    if (!out) return true;
    left = right;
  }
  return true;
}

bool CompiledConstraint::call(const Step& step, Number& out) {
  Number a, b;
  if (step.children.empty() || !run(step.children[0], a) || a.is_real) return false;
  switch (step.node->function) {
    case ExpressionFunction::kMin:
    case ExpressionFunction::kMax:
      for (std::size_t i = 1; i < step.children.size(); ++i) {
        if (!run(step.children[i], b) || b.is_real) return false;
        const bool smaller = b.integer < a.integer;
        if (b.integer != a.integer && smaller == (step.node->function == ExpressionFunction::kMin))
          a = b;
      }
      out = a;
      return true;
    case ExpressionFunction::kCeilDiv:
      if (!run(step.children[1], b) || b.is_real || b.integer <= 0) return false;
      out = Number(a.integer / b.integer + (a.integer % b.integer > 0 ? 1 : 0));
      return true;
    case ExpressionFunction::kAbs:
      if (a.integer < 0) return integer_binary(Kind::kSubtract, 0, a.integer, out);
      out = a;
      return true;
    default:
      return false;
  }
}

}  // namespace purlin::tune
