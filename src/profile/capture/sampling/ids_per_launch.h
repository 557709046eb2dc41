// SPDX-License-Identifier: Apache-2.0
// IdsPerLaunch: how many correlation IDs CUPTI gives out for each launch that has a record. The
// value is above 1 when launches are captured into graphs, when memcpy and memset are not recorded,
// or when API calls have IDs (bench/results/correlation_ids.md).
//
// Owned by the LaunchCounter. Thread-safety: none. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace purlin::profile::capture {

class IdsPerLaunch {
 public:
  static constexpr double kMinLaunches = 8;  // fewer in a window teach nothing

  bool known() const { return value_ > 0; }
  bool learned() const { return gaps_ > 0; }  // from a window
  double value() const { return known() ? value_ : 1; }
  // API calls have IDs from now on: the value is unknown until a window was seen.
  void forget() { value_ = ids_ = gaps_ = 0; }
  // `launches`: ID and start of each launch of one window, at least kMinLaunches. `open_ns`: the
  // window's length.
  void learn(std::vector<std::pair<std::int64_t, std::int64_t>> launches, double open_ns);

 private:
  double value_ = 1;           // 0: unknown
  double ids_ = 0, gaps_ = 0;  // weighted sums over the gaps between launches
};

}  // namespace purlin::profile::capture
