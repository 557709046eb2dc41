// SPDX-License-Identifier: Apache-2.0
// CompiledConstraint: a constraint's expression made fast for the innermost loop of space building.
//
// The tree is flattened, constants are folded, and what does not depend on the parameter that
// varies innermost is computed once per round. It knows the ordinary case only: integers and reals
// without overflow or division by zero. For all else it answers kUnknown, and the caller asks the
// Expression itself, whose meaning is the one that counts. Thread-safety: belongs to one thread.
#pragma once

#include "model/expression.h"
#include "model/expression_node.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace purlin::tune {

// An integer or a real; booleans are integers, as in Python.
struct Number {
  Number() = default;
  explicit Number(std::int64_t value) : integer(value) {}
  explicit Number(double value) : is_real(true), real(value) {}
  // nullopt for a text.
  static std::optional<Number> of(const Value& value);
  bool truthy() const { return is_real ? real != 0 : integer != 0; }

  bool is_real = false;
  std::int64_t integer = 0;
  double real = 0;
};

enum class Verdict : std::uint8_t { kFalse, kTrue, kUnknown };

class CompiledConstraint {
 public:
  // What a name is: a place in the array given to evaluate(), or a constant.
  struct Meaning {
    std::optional<std::size_t> slot;
    std::optional<Number> constant;  // neither: a text, which is not compiled
  };
  using Meanings = std::function<Meaning(std::string_view)>;
  // `innermost` is the slot that changes fastest. REQUIRES: the expression is not empty.
  CompiledConstraint(const Expression& expression, const Meanings& meaning, std::size_t innermost);

  // Call whenever a slot other than the innermost changed.
  void start_round() { ++round_; }
  Verdict evaluate(const Number* slots);

 private:
  using Node = Expression::Node;
  struct Step {
    const Node* node = nullptr;  // owned by the expression, which is kept alive
    std::size_t slot = 0;        // of a name
    bool varies = false;         // with the innermost slot
    bool folded = false;         // `value` holds for good
    bool hoisted = false;        // does not vary, and its parent does
    bool known = false;          // whether this round's `value` could be computed
    std::uint64_t round = 0;     // the round of `value`
    Number value;
    std::vector<std::size_t> children;
  };

  std::size_t add(const Node& node, const Meanings& meaning, std::size_t innermost);
  bool run(std::size_t index, Number& out);
  bool compute(const Step& step, Number& out);
  bool compare(const Step& step, bool& out);
  bool call(const Step& step, Number& out);

  Expression expression_;
  std::vector<Step> steps_;
  std::size_t root_ = 0;
  std::uint64_t round_ = 1;
  const Number* slots_ = nullptr;
  bool compiled_ = true;  // false: kUnknown, always
};

}  // namespace purlin::tune
