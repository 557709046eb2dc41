// SPDX-License-Identifier: Apache-2.0
#include "model/expression/integer_program.h"

#include "model/expression/integer.h"
#include "model/expression/node.h"

#include <algorithm>
#include <bit>

namespace purlin {

// Walks a constraint's tree into postfix steps; false where a node has no counterpart.
class IntegerProgramCompiler {
 public:
  using Node = Expression::Node;
  using Op = IntegerProgram::Op;
  IntegerProgramCompiler(const Expression::Lookup& constants,
                         const std::vector<std::string>& inputs,
                         std::vector<IntegerProgram::Step>& steps,
                         std::array<std::uint8_t, 8>& zero_bits)
      : constants_(constants), inputs_(inputs), steps_(steps), zero_bits_(zero_bits) {}

  bool constraint(const Expression& expression) {
    expression_ = &expression;
    return expression.root() != nullptr && require(*expression.root());
  }

 private:
  // A multiple that an input has to be.
  struct Alignment {
    std::size_t input;
    std::int64_t divisor;
  };

  bool require(const Node& node) {
    if (node.kind == Node::Kind::kAnd) {
      for (const Node& part : node.children)
        if (!require(part)) return false;
      return true;
    }
    if (const auto alignment = alignment_of(node);
        alignment && alignment->input < zero_bits_.size() &&
        std::has_single_bit(static_cast<std::uint64_t>(alignment->divisor))) {
      std::uint8_t& bits = zero_bits_[alignment->input];
      bits = std::max(bits, static_cast<std::uint8_t>(
                                std::countr_zero(static_cast<std::uint64_t>(alignment->divisor))));
      return true;
    }
    depth_ = 0;
    return truth(node) && push(Op::kRequire, -1);
  }

  // `input % constant == 0`, or several of those joined by `or` of which one implies the others.
  std::optional<Alignment> alignment_of(const Node& node) {
    if (node.kind == Node::Kind::kOr) {
      std::optional<Alignment> weakest;
      for (const Node& part : node.children) {
        const auto alignment = alignment_of(part);
        if (!alignment || (weakest && weakest->input != alignment->input)) return std::nullopt;
        if (!weakest || weakest->divisor % alignment->divisor == 0)
          weakest = alignment;
        else if (alignment->divisor % weakest->divisor != 0)
          return std::nullopt;
      }
      return weakest;
    }
    if (node.kind != Node::Kind::kCompare || node.comparisons.size() != 1 ||
        node.comparisons[0] != Node::Comparison::kEqual ||
        node.children[0].kind != Node::Kind::kModulo || fold(node.children[1]) != 0)
      return std::nullopt;
    const Node& operand = node.children[0].children[0];
    const auto divisor = fold(node.children[0].children[1]);
    if (operand.kind != Node::Kind::kName || !divisor || *divisor < 1) return std::nullopt;
    const std::string& name = expression_->names()[operand.name];
    const auto input = std::find(inputs_.begin(), inputs_.end(), name);
    if (input == inputs_.end()) return std::nullopt;
    return Alignment{static_cast<std::size_t>(input - inputs_.begin()), *divisor};
  }

  // The value of a node that names no input.
  std::optional<std::int64_t> fold(const Node& node) {
    std::vector<IntegerProgram::Step> steps;
    IntegerProgramCompiler part(constants_, {}, steps, zero_bits_);
    part.expression_ = expression_;
    if (!part.number(node)) return std::nullopt;
    return IntegerProgram::evaluate(steps, nullptr);
  }

  // `grows`: what the step does to the stack's height.
  bool push(Op op, int grows, std::int64_t value = 0) {
    steps_.push_back({op, value});
    depth_ += grows;
    return depth_ <= IntegerProgram::kMaxStack && steps_.size() <= IntegerProgram::kMaxSteps;
  }

  bool constant(const Value& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      return push(Op::kConstant, 1, *integer);
    if (const auto* flag = std::get_if<bool>(&value)) return push(Op::kConstant, 1, *flag ? 1 : 0);
    return false;
  }

  bool name(const std::string& name) {
    const auto input = std::find(inputs_.begin(), inputs_.end(), name);
    if (input != inputs_.end()) return push(Op::kInput, 1, input - inputs_.begin());
    const Value* value = constants_(name);
    return value != nullptr && constant(*value);
  }

  bool binary(Op op, const Node& a, const Node& b) {
    return number(a) && number(b) && push(op, -1);
  }

  // The node's value as an integer.
  bool number(const Node& node) {
    const auto& child = node.children;
    switch (node.kind) {
      case Node::Kind::kLiteral:
        return constant(node.literal);
      case Node::Kind::kName:
        return name(expression_->names()[node.name]);
      case Node::Kind::kNegate:
        return number(child[0]) && push(Op::kNegate, 0);
      case Node::Kind::kPlus:
        return number(child[0]);
      case Node::Kind::kNot:
        return truth(child[0]) && push(Op::kNot, 0);
      case Node::Kind::kAdd:
        return binary(Op::kAdd, child[0], child[1]);
      case Node::Kind::kSubtract:
        return binary(Op::kSubtract, child[0], child[1]);
      case Node::Kind::kMultiply:
        return binary(Op::kMultiply, child[0], child[1]);
      case Node::Kind::kFloorDivide:
        return binary(Op::kFloorDivide, child[0], child[1]);
      case Node::Kind::kModulo:
        return binary(Op::kModulo, child[0], child[1]);
      case Node::Kind::kCompare:
        return comparison(node);
      case Node::Kind::kCall:
        return call(node);
      default:
        return false;  // and/or as a number, reals, powers, conditionals
    }
  }

  // The node's truth: what `and` and `or` yield matters only as such.
  bool truth(const Node& node) {
    if (node.kind != Node::Kind::kAnd && node.kind != Node::Kind::kOr) return number(node);
    const Op op = node.kind == Node::Kind::kAnd ? Op::kAnd : Op::kOr;
    if (!truth(node.children[0])) return false;
    for (std::size_t i = 1; i < node.children.size(); ++i)
      if (!truth(node.children[i]) || !push(op, -1)) return false;
    return true;
  }

  bool comparison(const Node& node) {
    for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
      const Node &a = node.children[i], &b = node.children[i + 1];
      Op op = Op::kEqual;
      switch (node.comparisons[i]) {
        case Node::Comparison::kEqual:
          op = Op::kEqual;
          break;
        case Node::Comparison::kNotEqual:
          op = Op::kNotEqual;
          break;
        case Node::Comparison::kLess:
          op = Op::kLess;
          break;
        case Node::Comparison::kLessEqual:
          op = Op::kLessEqual;
          break;
        case Node::Comparison::kGreater:
          op = Op::kGreater;
          break;
        case Node::Comparison::kGreaterEqual:
          op = Op::kGreaterEqual;
          break;
        default:
          return false;  // membership
      }
      if (!binary(op, a, b) || (i > 0 && !push(Op::kAnd, -1))) return false;
    }
    return true;
  }

  bool call(const Node& node) {
    const auto& child = node.children;
    switch (node.function) {
      case ExpressionFunction::kInt:
        return number(child[0]);
      case ExpressionFunction::kCeilDiv:
        return binary(Op::kCeilDivide, child[0], child[1]);
      case ExpressionFunction::kRoundUp:
        return binary(Op::kRoundUp, child[0], child[1]);
      case ExpressionFunction::kMin:
      case ExpressionFunction::kMax: {
        const Op op = node.function == ExpressionFunction::kMin ? Op::kMin : Op::kMax;
        if (!number(child[0])) return false;
        for (std::size_t i = 1; i < child.size(); ++i)
          if (!number(child[i]) || !push(op, -1)) return false;
        return true;
      }
      default:
        return false;
    }
  }

  const Expression::Lookup& constants_;
  const std::vector<std::string> inputs_;
  std::vector<IntegerProgram::Step>& steps_;
  std::array<std::uint8_t, 8>& zero_bits_;
  const Expression* expression_ = nullptr;
  int depth_ = 0;
};

bool IntegerProgram::add(const Expression& constraint, const std::vector<std::string>& inputs,
                         const Expression::Lookup& constants) {
  return IntegerProgramCompiler(constants, inputs, steps_, zero_bits_).constraint(constraint);
}

bool IntegerProgram::holds(const std::int64_t* inputs) const noexcept {
  for (std::size_t i = 0; i < zero_bits_.size(); ++i)
    if (zero_bits_[i] != 0 && (inputs[i] & ((std::int64_t{1} << zero_bits_[i]) - 1)) != 0)
      return false;
  return steps_.empty() || evaluate(steps_, inputs).has_value();
}

std::optional<std::int64_t> IntegerProgram::evaluate(const std::vector<Step>& steps,
                                                     const std::int64_t* inputs) noexcept {
  std::int64_t stack[kMaxStack + 1];
  int top = -1;
  for (const Step& step : steps) {
    if (step.op == Op::kConstant || step.op == Op::kInput) {
      stack[++top] = step.op == Op::kConstant ? step.value : inputs[step.value];
      continue;
    }
    if (step.op == Op::kRequire) {
      if (stack[top--] == 0) return std::nullopt;
      continue;
    }
    if (step.op == Op::kNegate || step.op == Op::kNot) {
      if (step.op == Op::kNot)
        stack[top] = stack[top] == 0;
      else if (__builtin_sub_overflow(std::int64_t{0}, stack[top], &stack[top]))
        return std::nullopt;
      continue;
    }
    const std::int64_t b = stack[top--], a = stack[top];
    std::int64_t& out = stack[top];
    std::optional<std::int64_t> divided;
    switch (step.op) {
      case Op::kAnd:
        out = a != 0 && b != 0;
        break;
      case Op::kOr:
        out = a != 0 || b != 0;
        break;
      case Op::kAdd:
        if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
        break;
      case Op::kSubtract:
        if (__builtin_sub_overflow(a, b, &out)) return std::nullopt;
        break;
      case Op::kMultiply:
        if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
        break;
      case Op::kFloorDivide:
        divided = integer::floor_divide(a, b);
        break;
      case Op::kModulo:
        divided = integer::modulo(a, b);
        break;
      case Op::kCeilDivide:
        divided = integer::ceil_divide(a, b);
        break;
      case Op::kRoundUp:
        divided = integer::round_up(a, b);
        break;
      case Op::kMin:
        out = std::min(a, b);
        break;
      case Op::kMax:
        out = std::max(a, b);
        break;
      case Op::kEqual:
        out = a == b;
        break;
      case Op::kNotEqual:
        out = a != b;
        break;
      case Op::kLess:
        out = a < b;
        break;
      case Op::kLessEqual:
        out = a <= b;
        break;
      case Op::kGreater:
        out = a > b;
        break;
      case Op::kGreaterEqual:
        out = a >= b;
        break;
      default:
        return std::nullopt;
    }
    if (step.op >= Op::kFloorDivide && step.op <= Op::kRoundUp) {
      if (!divided) return std::nullopt;
      out = *divided;
    }
  }
  return top < 0 ? 1 : stack[top];
}

}  // namespace purlin
