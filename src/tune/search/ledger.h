// SPDX-License-Identifier: Apache-2.0
// Ledger: the configs that a strategy asked for or has results of, so that it proposes nothing
// twice. It also finds the ways from one config to another that stay within the constraints.
// Strategies are built on it. Thread-safety: belongs to one thread. Never fails.
#pragma once

#include "base/random.h"
#include "tune/space/space.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace purlin::tune {

class Ledger {
 public:
  Ledger(const Space& space, Random& random)
      : space_(space), random_(random), shuffle_(space, random.next()) {}

  bool knows(std::size_t index) const { return known_.contains(index); }
  // Marks a config as known: asked for, or with a result. False when it was known before.
  bool take(std::size_t index) { return known_.insert(index).second; }
  // A config not known, uniformly drawn, and taken; nullopt when all are known.
  std::optional<std::size_t> draw();
  // A config not known near this one, and taken: few random steps away at first, more where those
  // are all known. nullopt only when all are known.
  std::optional<std::size_t> draw_near(std::size_t index);

  // A random neighbour; the config itself where it has none.
  std::size_t step(std::size_t index);
  // What becomes of `from` when it takes the target's values one parameter at a time, in random
  // order and each with the given probability, leaving out those that would break a constraint.
  std::size_t approach(std::size_t from, const Assignment& target, double probability);
  Assignment values(std::size_t index) const;

 private:
  const Space& space_;
  Random& random_;
  Shuffle shuffle_;
  std::unordered_set<std::size_t> known_;
};

}  // namespace purlin::tune
