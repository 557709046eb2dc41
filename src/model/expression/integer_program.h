// SPDX-License-Identifier: Apache-2.0
// IntegerProgram: constraints over integers as a list of steps for a stack, for the hot path.
//
// A lookup evaluates the constraints of an entry in nanoseconds, so this form allocates nothing,
// fails in no way and depends on no locale. It has integers alone: an expression with reals, texts,
// powers or conditionals is not compiled, and the caller evaluates the Expression instead. Both
// agree on every value that this form has (integer_program_test.cc). Thread-safety: immutable.
#pragma once

#include "model/expression/expression.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace purlin {

class IntegerProgram {
 public:
  // Adds a constraint; holds() is then the truth of all of them together. `inputs` names the values
  // that holds() gets, in their order; `constants` has the values of all other names. False where
  // the constraint has no such form: the program is then of no use.
  bool add(const Expression& constraint, const std::vector<std::string>& inputs,
           const Expression::Lookup& constants);
  // Whether every constraint is true. False also where the arithmetic overflows or divides by 0.
  bool holds(const std::int64_t* inputs) const noexcept;

  // Most constraints say that an input is a multiple of a power of two. Those are kept as the
  // number of low bits that must be 0, for each input. rest(): whether there are others.
  const std::array<std::uint8_t, 8>& zero_bits() const { return zero_bits_; }
  bool rest() const { return !steps_.empty(); }

 private:
  friend class IntegerProgramCompiler;
  enum class Op : std::uint8_t {
    kConstant,
    kInput,
    kNegate,
    kNot,
    kAnd,
    kOr,
    kAdd,
    kSubtract,
    kMultiply,
    kFloorDivide,
    kModulo,
    kCeilDivide,
    kRoundUp,
    kMin,
    kMax,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kRequire,  // ends a constraint: the top must be true
  };
  struct Step {
    Op op;
    std::int64_t value = 0;  // the constant, or the index of the input
  };
  static constexpr int kMaxStack = 32;
  static constexpr std::size_t kMaxSteps = 512;
  // The value on top of the stack, or 1 for an empty stack. nullopt where a requirement is not met
  // or the arithmetic is not defined.
  static std::optional<std::int64_t> evaluate(const std::vector<Step>& steps,
                                              const std::int64_t* inputs) noexcept;
  std::vector<Step> steps_;
  std::array<std::uint8_t, 8> zero_bits_{};
};

}  // namespace purlin
