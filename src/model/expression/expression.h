// SPDX-License-Identifier: Apache-2.0
// Expression: the small language of specs, for constraints, geometry, sizes and FLOP counts.
//
// Python's syntax and meaning, so that published search spaces load unchanged:
// - Operators: or and not, comparisons (chained too), in/not in with [lists], + - * / // % **,
//   unary - + not, conditional `a if c else b`, and the && || ! of C as synonyms.
// - Calls: min max abs int float ceil floor round log2 sqrt ceil_div(a, b) round_up(a, multiple)
//   pow2_ceil(a).
// - Operands: parentheses, integers, reals, strings, True, False.
//
// Integers are 64-bit and overflow is an error. // and % round toward minus infinity; / is real.
//
// Thread-safety: immutable after parse. Errors: kInvalid with the column, e.g. "column 7: …".
#pragma once

#include "base/status.h"
#include "model/expression/value.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace purlin {

class Expression {
 public:
  // The value of a name; nullptr for an unknown name.
  using Lookup = std::function<const Value*(std::string_view)>;
  struct Node;  // the tree; tune/space compiles constraints from it

  static Result<Expression> parse(std::string_view text);
  Expression();
  ~Expression();
  Expression(const Expression&);
  Expression& operator=(const Expression&);
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  const std::string& text() const { return text_; }
  std::string enclosed() const;  // in parentheses, unless a name or number alone
  bool empty() const { return root_ == nullptr; }
  // Free names, each once, in order of first use.
  const std::vector<std::string>& names() const { return names_; }
  const Node* root() const { return root_.get(); }

  Result<Value> evaluate(const Lookup& lookup) const;
  Result<std::int64_t> evaluate_int(const Lookup& lookup) const;  // kInvalid unless integral
  Result<double> evaluate_double(const Lookup& lookup) const;
  Result<bool> evaluate_bool(const Lookup& lookup) const;

 private:
  std::string text_;
  std::vector<std::string> names_;
  std::shared_ptr<const Node> root_;
};

// A Lookup over named values that also falls back to another.
class Scope {
 public:
  void set(std::string_view name, Value value);
  void add(const Config& config);
  void add(const ProblemShape& shape);
  // The device's facts under their spec names: device_max_threads, device_shared_memory,
  // device_units, device_warp_size, device_is_cpu.
  Expression::Lookup lookup() const;  // refers to this Scope
  const Value* find(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

}  // namespace purlin
