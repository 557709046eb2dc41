// SPDX-License-Identifier: Apache-2.0
#include "tune/search/mend.h"

#include <algorithm>

namespace purlin::tune {

void Mend::add(std::size_t index, bool worked) {
  if (worked) return;
  to_mend_.insert(index);
  if (const auto found = step_of_.find(index); found != step_of_.end())
    to_mend_.insert(found->second);
}

void Mend::take(const Way& way) {
  to_mend_.erase(way.step);
  step_of_[way.index] = way.step;
}

std::vector<Mend::Way> Mend::of(std::size_t best) const {
  std::vector<Way> ways;
  if (to_mend_.empty()) return ways;
  const std::size_t count = space_.parameters().size();
  Assignment own(count), stepped(count), mended(count);
  space_.assignment(best, own);
  for (const std::size_t step : space_.adjacent(best)) {
    if (!to_mend_.contains(step)) continue;
    space_.assignment(step, stepped);
    const auto changed = static_cast<std::size_t>(
        std::mismatch(own.begin(), own.end(), stepped.begin()).first - own.begin());
    for (const std::size_t index : space_.adjacent(step)) {
      space_.assignment(index, mended);
      if (mended[changed] == stepped[changed]) ways.push_back({index, step});
    }
  }
  return ways;
}

}  // namespace purlin::tune
