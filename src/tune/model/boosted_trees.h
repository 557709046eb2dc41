// SPDX-License-Identifier: Apache-2.0
// BoostedTrees: gradient-boosted regression trees with squared loss over rows of small bytes.
//
// Each tree is fitted to what the trees before it leave over, on a random part of the rows and of
// the features, greedily by the sums of each feature's values. Trees are stored as full binary
// trees, so that a prediction is a few loads without a branch. Deterministic under the generator.
// Thread-safety: a value type. Never fails.
#pragma once

#include "base/random.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace purlin::tune {

struct BoostingOptions {
  int trees = 40;
  int depth = 4;
  double rate = 0.2;     // share of what is left over that each tree takes
  double columns = 0.7;  // share of the features each tree sees
  double penalty = 1;    // added to the number of rows in a leaf: few rows move little
  std::size_t leaf = 2;  // fewest rows of a leaf
};

class BoostedTrees {
 public:
  // `rows` holds targets.size() rows of `features` bytes below 64; `chosen` are the rows to use.
  // REQUIRES: chosen is not empty, and names no row twice.
  BoostedTrees(std::span<const std::uint8_t> rows, std::size_t features,
               std::span<const float> targets, std::span<const std::uint32_t> chosen,
               const BoostingOptions& options, Random& random);

  float predict(const std::uint8_t* row) const;

 private:
  struct Node {
    std::uint16_t feature = 0;
    std::uint8_t at_most = 255;  // to the left; 255 = no split
  };
  class Fitter;

  int depth_;
  float base_ = 0;
  std::vector<Node> nodes_;    // 2^depth - 1 of each tree
  std::vector<float> leaves_;  // 2^depth of each tree
};

}  // namespace purlin::tune
