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
  // How far the value may be off, as a part of it: twice its standard error over windows, and how
  // much the long gaps that windows seldom hold have changed it. 0 where each launch has one ID.
  double doubt() const;
  // API calls have IDs from now on: the value is unknown until a window was seen.
  void forget() {
    *this = {};
    value_ = 0;
  }
  // `launches`: ID and start of each launch of one window, at least kMinLaunches, or of several
  // `windows` (1 or more) whose records came together. `open_ns`: the length of a window.
  void learn(std::vector<std::pair<std::int64_t, std::int64_t>> launches, double open_ns,
             int windows);

 private:
  double value_ = 1;                       // 0: unknown
  double ids_ = 0, gaps_ = 0;              // weighted sums over the gaps between launches
  double plain_ids_ = 0, plain_gaps_ = 0;  // the same without weights
  double squares_ids_ = 0, products_ = 0, squares_gaps_ = 0;  // of the weighted sums of windows
};

}  // namespace purlin::profile::capture
