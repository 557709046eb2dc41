// SPDX-License-Identifier: Apache-2.0
// Places: where configs lie relative to one another, for strategies that reason by likeness.
//
// Each parameter with two values or more is a dimension. A number lies at its rank in [0, 1],
// because most parameters are powers of two or evenly spaced, and both then have even steps. Any
// two texts or booleans are equally unlike. Thread-safety: immutable. Never fails.
#pragma once

#include "tune/space/space.h"

#include <cstddef>
#include <span>
#include <vector>

namespace purlin::tune {

class Places {
 public:
  explicit Places(const Space& space);

  std::size_t dimensions() const { return dimensions_.size(); }
  // Of each dimension.
  std::vector<bool> categorical() const;
  // The place of one config. REQUIRES: out.size() == dimensions().
  void place(std::size_t index, std::span<float> out) const;
  std::vector<float> of(std::size_t index) const;
  // The sum over the dimensions, each between 0 and 1.
  float distance(std::span<const float> a, std::span<const float> b) const;

 private:
  struct Dimension {
    std::size_t parameter = 0;
    bool categorical = false;
    std::vector<float> places;  // of each value
  };

  const Space& space_;
  std::vector<Dimension> dimensions_;
};

}  // namespace purlin::tune
