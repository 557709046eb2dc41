// SPDX-License-Identifier: Apache-2.0
// Three scenarios of one estimate: low is what is left if every doubtful figure goes against the
// change, high if every one goes for it. Values.
#pragma once

namespace purlin::analyze {

struct Interval3 {
  double low = 0, mid = 0, high = 0;
  Interval3 operator+(const Interval3& other) const {
    return {low + other.low, mid + other.mid, high + other.high};
  }
  Interval3 operator*(double factor) const { return {low * factor, mid * factor, high * factor}; }
  bool operator==(const Interval3&) const = default;
};
// Puts the ends in order and none above `max` (Amdahl). The low end may be negative: a loss.
Interval3 bounded(Interval3 interval, double max);

enum class Scenario { kLow, kMid, kHigh };
inline constexpr Scenario kScenarios[] = {Scenario::kLow, Scenario::kMid, Scenario::kHigh};
inline double at(const Interval3& interval, Scenario scenario) {
  return scenario == Scenario::kLow   ? interval.low
         : scenario == Scenario::kMid ? interval.mid
                                      : interval.high;
}

}  // namespace purlin::analyze
