// SPDX-License-Identifier: Apache-2.0
// Whether an entry's config is valid at another problem shape than the one it was measured at.
//
// A bucket promises that the winner is about as good at its neighbours, not that it is valid there:
// "N % VECTOR == 0" holds at N=1024 and not at N=1001. The entry carries the constraints of its
// spec that name a dimension; a lookup serves the entry only where they hold. ShapeCheck is the
// same in a form for the hot path: no allocation, no failure, no locale. Thread-safety: immutable.
#pragma once

#include "base/status.h"
#include "cache/entry.h"

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
                                           const std::vector<std::string>& dimensions);
  // False also where the arithmetic would overflow or divide by zero.
  bool holds(const std::int64_t* extents) const noexcept;

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
  std::vector<Step> steps_;
};

}  // namespace purlin::cache
