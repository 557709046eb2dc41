// SPDX-License-Identifier: Apache-2.0
// Turns: which of several ways of searching asks for the next config.
//
// The way that spent least since its last gain has the turn. So a way that finds faster configs
// goes on, and ways that stagnate share the budget. One that asks for slow configs gets fewer of
// them. An evaluation of usual cost counts 1. Ways begin with a handicap, as if they had spent so
// much without a gain. Thread-safety: belongs to one thread. Never fails.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace purlin::tune {

class Turns {
 public:
  explicit Turns(std::vector<double> handicaps) : idle_(std::move(handicaps)) {}

  // The ways, in the order in which they are to be tried.
  std::vector<std::size_t> order() const;
  void asked(std::size_t index, std::size_t way);
  // The result of a config, also of one that no way asked for. `cost`: 1 is usual.
  void told(std::size_t index, bool gain, double cost);

 private:
  std::vector<double> idle_;  // by way: spent since its last gain; outstanding ones count 1
  std::unordered_map<std::size_t, std::size_t> ways_;  // of outstanding configs
};

}  // namespace purlin::tune
