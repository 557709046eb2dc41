// SPDX-License-Identifier: Apache-2.0
// Turns: which of several ways of searching asks for the next config.
//
// The way with the fewest results since its last gain has the turn. So a way that finds
// faster configs goes on, and ways that stagnate take turns. Ways begin with a handicap, as if so
// many of their results had been no gain. Thread-safety: belongs to one thread. Never fails.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace purlin::tune {

class Turns {
 public:
  explicit Turns(std::vector<std::size_t> handicaps) : idle_(std::move(handicaps)) {}

  // The ways, in the order in which they are to be tried.
  std::vector<std::size_t> order() const;
  void asked(std::size_t index, std::size_t way);
  // The result of a config, also of one that no way asked for.
  void told(std::size_t index, bool gain);

 private:
  std::vector<std::size_t> idle_;  // by way: results since its last gain, outstanding ones too
  std::unordered_map<std::size_t, std::size_t> ways_;  // of outstanding configs
};

}  // namespace purlin::tune
