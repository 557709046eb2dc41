// SPDX-License-Identifier: Apache-2.0
// Space: the valid configs of a set of parameters under constraints, by index.
//
// A space is a product of components, each a diagram (diagram.h) of parameters that constraints tie
// together, so that 10^12 configs and more are counted, drawn and found without a list of them.
// Space order: components by their first parameter, the first varying slowest; in a component, the
// order of its diagram, which is fixed by the parameters and constraints. Thread-safety: immutable.
#pragma once

#include "base/random.h"
#include "model/expression/value.h"
#include "model/spec/spec.h"
#include "tune/space/diagram.h"

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
  std::string constraint;  // its text, or its name where it is not the spec's own
  std::string where;       // "gemm.toml:12:3"
  // Configs of the Cartesian product that this constraint removed and none checked before it; over
  // all constraints they add up to what was removed.
  double configs = 0;
};

class Space {
 public:
  // How many configs are valid: counted, or estimated where is_exact() is false.
  std::size_t size() const { return size_; }
  // False: the constraints defeat counting (build.h). Indices then go up to index_count(), some of
  // them are not valid, and valid() tells which; what neighbours, adjacent, sample and Shuffle
  // yield is always valid.
  bool is_exact() const { return filters_.empty(); }
  double size_error() const { return size_error_; }  // relative standard error of the estimate
  std::size_t index_count() const { return index_count_; }
  // REQUIRES: index < index_count(); so in all that take an index.
  bool valid(std::size_t index) const;
  double cartesian() const { return cartesian_; }
  const std::vector<Pruned>& pruned() const { return pruned_; }
  const std::vector<Parameter>& parameters() const { return parameters_; }

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
    Diagram diagram;
    std::size_t stride = 1;  // indices of the space per assignment of this component
  };
  enum class Reach { kAll, kNearest };
  std::vector<std::size_t> around(std::size_t index, Reach reach) const;
  // The place in filters_ of the first that does not hold; nullopt when all do.
  std::optional<std::size_t> rejecting_filter(std::span<const std::uint16_t> assignment) const;

  std::vector<Parameter> parameters_;
  std::vector<Component> components_;
  std::vector<Pruned> pruned_;
  std::vector<SpecExpression> filters_;  // constraints that the components do not know of
  Scope constants_;                      // for filters_
  std::size_t size_ = 1, index_count_ = 1;
  double cartesian_ = 1, size_error_ = 0;
};

// Draws 0 … count-1, or the valid configs of a space, in random order, each once, in memory that
// grows with what was drawn.
class Shuffle {
 public:
  Shuffle(std::size_t count, std::uint64_t seed) : remaining_(count), random_(seed) {}
  // `space` outlives this.
  Shuffle(const Space& space, std::uint64_t seed)
      : space_(space.is_exact() ? nullptr : &space),
        remaining_(space.index_count()),
        random_(seed) {}
  std::optional<std::size_t> next();

 private:
  std::optional<std::size_t> draw();

  const Space* space_ = nullptr;  // whose invalid indices are skipped
  std::size_t remaining_;
  Random random_;
  std::unordered_map<std::size_t, std::size_t> moved_;  // Fisher-Yates over an array never made
};

}  // namespace purlin::tune
