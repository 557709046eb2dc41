// SPDX-License-Identifier: Apache-2.0
// Exchange: configs in which two parameters of the same values trade a step, or their values.
//
// The sides of a tile are such parameters. Single steps rarely lead from 64 x 256 to 128 x 128 or
// to 256 x 64: the config between takes half or twice the registers, so it is slow or fails. An
// exchange keeps the product. Thread-safety: immutable. Never fails.
#pragma once

#include "tune/space/space.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace purlin::tune {

class Exchange {
 public:
  explicit Exchange(const Space& space);

  // Of one config, the valid ones: values traded first, then a step up and one down.
  std::vector<std::size_t> of(std::size_t index) const;

 private:
  const Space& space_;
  std::vector<std::pair<std::size_t, std::size_t>> pairs_;  // of parameters
};

}  // namespace purlin::tune
