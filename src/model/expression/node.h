// SPDX-License-Identifier: Apache-2.0
// The tree of an Expression and the meaning of its operators on values, for those who evaluate it
// in another way (tune/space compiles constraints from it). Depth and size are bounded by the
// parser, so a walk may recurse. Failures are kInvalid without a column: the caller knows the node.
#pragma once

#include "model/expression/expression.h"

#include <cstddef>
#include <vector>

namespace purlin {

enum class ExpressionFunction {
  kMin,
  kMax,
  kAbs,
  kInt,
  kFloat,
  kCeil,
  kFloor,
  kRound,
  kLog2,
  kSqrt,
  kCeilDiv,
  kRoundUp,
  kPow2Ceil,
};

struct Expression::Node {
  enum class Kind {
    kLiteral,      // literal
    kName,         // name: index into Expression::names()
    kList,         // children; only as the last operand of a kCompare that ends in `in`
    kNegate,       // children[0], as in the next two
    kPlus,         // unary
    kNot,          //
    kAnd,          // two or more children, evaluated left to right until one decides; it is the
    kOr,           // result, as in Python
    kAdd,          // children[0], children[1]; as in the next six
    kSubtract,     //
    kMultiply,     //
    kDivide,       // real
    kFloorDivide,  //
    kModulo,       // sign of the divisor
    kPower,        //
    kCompare,      // children[i] comparisons[i] children[i + 1], all of them
    kConditional,  // children: condition, value if true, value if false
    kCall,         // function(children…); their number was checked
  };
  enum class Comparison {
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kIn,
    kNotIn,
  };

  Kind kind = Kind::kLiteral;
  int column = 1;  // 1-based, of the operator or the name
  int depth = 1;   // of the tree below, itself included
  Value literal;
  std::size_t name = 0;
  ExpressionFunction function = ExpressionFunction::kMin;
  std::vector<Comparison> comparisons;
  std::vector<Node> children;
};

using ExpressionNode = Expression::Node;
using ExpressionKind = Expression::Node::Kind;
using ExpressionComparison = Expression::Node::Comparison;

// kNegate, kPlus, kNot.
Result<Value> apply_unary(Expression::Node::Kind kind, const Value& operand);
// kAdd … kPower.
Result<Value> apply_binary(Expression::Node::Kind kind, const Value& left, const Value& right);
// All but kIn and kNotIn with a list; with a text on the right these look for a part of it.
Result<bool> apply_comparison(Expression::Node::Comparison comparison, const Value& left,
                              const Value& right);
Result<Value> apply_function(ExpressionFunction function, const std::vector<Value>& arguments);

}  // namespace purlin
