// SPDX-License-Identifier: Apache-2.0
// What each node of an execution trace is: a unit of work, inside of one, or no work at all. An op
// whose results its children wrote is no unit: they are. Pure functions.
#pragma once

#include "profile/import/flow/trace.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace purlin::profile::flow {

inline constexpr std::string_view kAccumulateNode = "torch::autograd::AccumulateGrad";

enum class Role : std::uint8_t {
  kFrame,       // a range, a thread, an op that its children do: look inside
  kInside,      // of a unit
  kView,        // metadata only
  kAllocation,  // memory without a value
  kUnit,
  kAccumulate,  // autograd takes a gradient
  kReader,      // Python's part of autograd: what it does with its inputs is not known
};

std::vector<Role> find_roles(const ExecutionTrace& trace);

// Storages of an op's inputs: an output in one of them is a view.
class Storages {
 public:
  explicit Storages(std::span<const TensorUse> uses) {
    for (const TensorUse& use : uses)
      if (use.storage != 0) sorted_.push_back(use.storage);
    std::sort(sorted_.begin(), sorted_.end());
  }
  bool has(const TensorUse& use) const {
    return std::binary_search(sorted_.begin(), sorted_.end(), use.storage);
  }

 private:
  std::vector<std::uint32_t> sorted_;
};

}  // namespace purlin::profile::flow
