// SPDX-License-Identifier: Apache-2.0
// Encoding: configs as rows of bytes that trees split on.
//
// A parameter with more than one value is a feature: the rank of its value, by number where values
// are numbers, else in the spec's order. Products of two numeric parameters are features too: what
// a kernel needs (threads, tiles, registers) is a product more often than a sum, and a tree would
// need many splits to see it. What other runs said of a config may be a feature, too.
// Thread-safety: immutable.
#pragma once

#include "tune/space/space.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace purlin::tune {

// A feature of configs that their values do not give.
struct KnownFeature {
  std::vector<std::pair<std::size_t, std::uint8_t>> bins;  // of some configs, ascending; below 64
  std::uint8_t otherwise = 0;                              // of the others

  std::uint8_t of(std::size_t index) const;
};

class Encoding {
 public:
  // The space outlives this.
  explicit Encoding(const Space& space, std::vector<KnownFeature> known = {});

  std::size_t features() const { return parameters_.size() + products_.size() + known_.size(); }
  // KnownFeatures, which are the last of the features.
  std::size_t known() const { return known_.size(); }
  // REQUIRES: out.size() == features().
  void encode(std::size_t index, std::span<std::uint8_t> out) const;

 private:
  static constexpr std::size_t kMaxProducts = 28;
  struct Feature {
    std::size_t parameter;
    std::vector<std::uint8_t> ranks;  // by value index
  };
  struct Product {
    std::size_t first, second;  // parameters
    std::size_t stride;         // values of the second
    std::vector<std::uint8_t> ranks;
  };
  const Space& space_;
  std::vector<Feature> parameters_;
  std::vector<Product> products_;
  std::vector<KnownFeature> known_;
};

}  // namespace purlin::tune
