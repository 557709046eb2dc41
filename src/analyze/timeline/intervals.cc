// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/intervals.h"

namespace purlin::analyze {

void sweep_layers(std::vector<IntervalCoverage>& layers, Interval window,
                  const std::function<void(Interval, std::size_t)>& piece) {
  std::int64_t at = window.begin;
  while (at < window.end) {
    std::size_t layer = 0;
    std::int64_t until = window.end;
    for (; layer < layers.size(); ++layer) {
      Interval found;
      if (!layers[layer].find(at, found)) continue;
      if (found.begin <= at) {
        until = std::min(until, found.end);
        break;
      }
      until = std::min(until, found.begin);  // a layer above begins here
    }
    piece({at, until}, layer);
    at = until;
  }
}

}  // namespace purlin::analyze
