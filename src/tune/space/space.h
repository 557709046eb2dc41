// SPDX-License-Identifier: Apache-2.0
// Space: the valid configs of a set of parameters under constraints, by index.
//
// Parameters that no constraint ties together are independent, so a space is a product of
// components, and only each component's own valid assignments are listed: 8 bytes for each, however
// many configs their product has. Space order: components by their first parameter, the first
// varying slowest, assignments in the order of the parameters' values. Thread-safety: immutable.
#pragma once

#include "base/random.h"
#include "model/spec.h"
#include "model/value.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::tune {

// Values of one config as indices into each parameter's values, in the spec's order.
using Assignment = std::vector<std::uint16_t>;

// What one constraint took away.
struct Pruned {
  std::string constraint;  // its text
  std::string where;       // "gemm.toml:12:3"
  // Configs of the Cartesian product that this constraint removed and none checked before it; over
  // all constraints they add up to what was removed.
  double configs = 0;
};

class Space {
 public:
  std::size_t size() const { return size_; }
  double cartesian() const { return cartesian_; }
  const std::vector<Pruned>& pruned() const { return pruned_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

  // REQUIRES: index < size().
  void assignment(std::size_t index, std::span<std::uint16_t> out) const;
  Config config(std::size_t index) const;
  // The index, or nullopt where it is not a config of this space.
  std::optional<std::size_t> find(std::span<const std::uint16_t> assignment) const;
  std::optional<std::size_t> find(const Config& config) const;
  // Every valid config that differs in exactly one parameter, ordered by parameter, then value.
  std::vector<std::size_t> neighbours(std::size_t index) const;
  // Of the neighbours, those nearest in value: for each parameter the next valid value before its
  // own and the next one after it, in the order of the parameter's values; at most two each.
  std::vector<std::size_t> adjacent(std::size_t index) const;
  // `count` different configs (all of them when there are fewer), uniformly drawn.
  std::vector<std::size_t> sample(std::size_t count, Random& random) const;

 private:
  friend class SpaceBuilder;
  struct Component {
    std::vector<std::size_t> parameters;  // ascending
    std::vector<std::uint64_t> strides;   // of each parameter's value index in a code
    std::vector<std::uint64_t> codes;     // of the valid assignments, ascending
    bool complete = false;                // every assignment is valid, and none is listed
    std::size_t size = 1;
    std::size_t stride = 1;  // indices of the space per assignment of this component
    std::uint64_t code(std::size_t local) const { return complete ? local : codes[local]; }
    std::optional<std::size_t> find(std::uint64_t code) const;
  };

  enum class Reach { kAll, kNearest };
  std::vector<std::size_t> around(std::size_t index, Reach reach) const;

  std::vector<Parameter> parameters_;
  std::vector<Component> components_;
  std::vector<Pruned> pruned_;
  std::size_t size_ = 1;
  double cartesian_ = 1;
};

// Draws 0 … count-1 in random order, each once, in memory that grows with what was drawn.
class Shuffle {
 public:
  Shuffle(std::size_t count, std::uint64_t seed) : remaining_(count), random_(seed) {}
  std::optional<std::size_t> next();

 private:
  std::size_t remaining_;
  Random random_;
  std::unordered_map<std::size_t, std::size_t> moved_;  // Fisher-Yates over an array never made
};

}  // namespace purlin::tune
