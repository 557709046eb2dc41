// SPDX-License-Identifier: Apache-2.0
#include "tune/search/transfer/turns.h"

#include <algorithm>
#include <numeric>

namespace purlin::tune {

std::vector<std::size_t> Turns::order() const {
  std::vector<std::size_t> ways(idle_.size());
  std::iota(ways.begin(), ways.end(), std::size_t{0});
  std::stable_sort(ways.begin(), ways.end(),
                   [&](std::size_t a, std::size_t b) { return idle_[a] < idle_[b]; });
  return ways;
}

void Turns::asked(std::size_t index, std::size_t way) {
  ways_[index] = way;
  ++idle_[way];
}

void Turns::told(std::size_t index, bool gain, double cost) {
  const auto found = ways_.find(index);
  if (found == ways_.end()) return;
  double& idle = idle_[found->second];
  idle = gain ? 0 : std::max(0.0, idle + cost - 1);
  ways_.erase(found);
}

}  // namespace purlin::tune
