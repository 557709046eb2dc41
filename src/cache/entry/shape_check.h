// SPDX-License-Identifier: Apache-2.0
// Whether an entry's config is valid at another problem shape than the one it was measured at.
//
// A bucket promises that the winner is about as good at its neighbours, not that it is valid there:
// "N % VECTOR == 0" holds at N=1024 and not at N=1001. The entry carries the constraints of its
// spec that name a dimension; a lookup serves the entry only where they hold. ShapeCheck is the
// same in a form for the hot path: no allocation, no failure, no locale. Thread-safety: immutable.
#pragma once

#include "base/status.h"
#include "cache/entry/entry.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace purlin::cache {

// Ok, or kInvalid naming the first constraint that does not hold at `problem`.
Status check_shape(const Entry& entry, const ProblemShape& problem);

class ShapeCheck {
 public:
  // nullopt when a constraint uses what only check_shape can evaluate (reals, texts, …).
  // `dimensions` is the order of the extents given to holds().
  static std::optional<ShapeCheck> compile(const Entry& entry,
                                           const std::vector<std::string>& dimensions,
                                           ConstraintCache& constraints);
  // False also where the arithmetic would overflow or divide by zero.
  bool holds(const std::int64_t* extents) const noexcept;

  // Most constraints say that an extent is a multiple of a tile, a power of two. Those are kept as
  // the number of low bits that must be 0, for each dimension; rest() is whether there are others.
  const std::array<std::uint8_t, 8>& zero_bits() const { return zero_bits_; }
  bool rest() const { return !steps_.empty(); }

 private:
  friend class ShapeCompiler;
  enum class Op : std::uint8_t {
    kConstant,
    kExtent,
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
    std::int64_t value = 0;  // the constant, or the index of the extent
  };
  static constexpr int kMaxStack = 32;
  // What is left on the stack, 1 where nothing is; nullopt where a requirement is not met or the
  // arithmetic is not defined.
  static std::optional<std::int64_t> evaluate(const std::vector<Step>& steps,
                                              const std::int64_t* extents) noexcept;
  std::vector<Step> steps_;
  std::array<std::uint8_t, 8> zero_bits_{};
};

}  // namespace purlin::cache
