// SPDX-License-Identifier: Apache-2.0
// SlowdownDetector: decides, one paired sample after the other, whether a winner has become slower
// than a challenger. It may be looked at after each sample, for ever: its error does not grow with
// looks.
//
// A sample is x = log(time of the winner / time of the challenger) of two launches whose order a
// coin decided. Let y = x - log(1 + margin). Every process R' = (R + 1)(1 + lambda g(y)) is an
// e-detector (Shin, Ramdas, Rinaldo 2022) while the winner is no slower. This means that R - n is a
// supermartingale. The reason: g(y) is odd and bounded, and the coin makes it zero or negative on
// average, for any noise, drift or tails.
//
// An alarm is raised when the average of the R exceeds a threshold T. The mean number of samples
// until this happens by chance is at least T. Over any streams of n samples in all, at most n / T
// alarms are expected. Restarting at each sample, R also finds a winner that becomes slower late.
// docs/guide/runtime.md has the figures. Thread-safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace purlin::runtime {

class SlowdownDetector {
 public:
  struct Options {
    double margin = 0.01;                // slower by less is no reason to change anything
    double samples_per_alarm = 100'000;  // at least, on average, while the winner is no slower
  };
  SlowdownDetector() : SlowdownDetector(Options{}) {}
  explicit SlowdownDetector(Options options);

  // True once the winner is slower; then the test starts again.
  bool add(double log_ratio);

  std::uint64_t samples() const { return samples_; }
  // Of the latest samples: the median time ratio; 1 before the first.
  double ratio() const;

 private:
  static constexpr std::array<double, 5> kStakes = {0.1, 0.25, 0.5, 0.75, 0.95};
  static constexpr std::size_t kRecent = 65;
  const Options options_;
  const double shift_;
  std::array<double, kStakes.size()> evidence_{};
  double scale_sum_ = 0.05, scale_count_ = 1;  // of |y|, with a first guess
  std::array<double, kRecent> recent_{};
  std::uint64_t samples_ = 0;
};

}  // namespace purlin::runtime
