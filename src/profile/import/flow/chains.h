// SPDX-License-Identifier: Apache-2.0
// Chains of results in one memory: a product, then the bias that is added to it in place. One
// memory holds them in turn, so they are kept or left out as a whole. Points into the units, which
// must outlive it. Immutable, so threads may share it. Cannot fail.
#pragma once

#include "profile/import/flow/units.h"

#include <cstdint>
#include <vector>

namespace purlin::profile::flow {

struct Chain {
  std::vector<std::uint32_t> units;
  bool ends = false;  // no op changes it after the last one, and others read no earlier value
};

class Chains {
 public:
  // Of the units of one step: [first, last).
  Chains(const Units& units, std::uint32_t first, std::uint32_t last);
  // The chain that a unit is in. Of several results each must stay: it is one alone.
  Chain of(std::uint32_t unit) const;

 private:
  Chain of_several_results(std::uint32_t unit) const;
  bool reads(std::uint32_t unit, std::uint32_t value) const;

  const Units& units_;
  const std::uint32_t first_, last_;
  std::vector<std::uint32_t> next_;     // by value: the one made of it in place
  std::vector<std::uint32_t> readers_;  // by value: units
};

}  // namespace purlin::profile::flow
