// SPDX-License-Identifier: Apache-2.0
// The rules that people use, written down from their sources, for bench_gate_quality. Each sees one
// process per arm, as their tools do; the rule from history sees one process per past commit.
// Pure functions.
#pragma once

#include "gate_noise.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace purlin::guard {

inline double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

inline double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

// "mean > 5 %": the rule of most scripts.
inline bool mean_is_red(const Iterations& then, const Iterations& now) {
  return mean_of(now.times_ns) > 1.05 * mean_of(then.times_ns);
}

// nvbench_compare.py before its robust mode: slower if the means differ by more than the smaller of
// the two relative standard deviations.
inline bool nvbench_legacy_is_red(const Iterations& then, const Iterations& now) {
  const double a = mean_of(then.times_ns), b = mean_of(now.times_ns);
  const double noise = std::min(deviation_of(then.times_ns) / a, deviation_of(now.times_ns) / b);
  return b > a && (b - a) / a > noise;
}

// Google Benchmark's compare.py: a two-sided Mann-Whitney U on the repetitions, alpha 0.05 (normal
// limit with correction for continuity and ties, as SciPy has it for samples of this size).
inline bool u_test_is_red(const Iterations& then, const Iterations& now) {
  const std::size_t n = then.times_ns.size(), m = now.times_ns.size();
  std::vector<std::pair<double, bool>> all;
  for (const double time : then.times_ns) all.emplace_back(time, false);
  for (const double time : now.times_ns) all.emplace_back(time, true);
  std::sort(all.begin(), all.end());
  double rank_sum = 0, ties = 0;
  for (std::size_t first = 0; first < all.size();) {
    std::size_t last = first;
    while (last + 1 < all.size() && all[last + 1].first == all[first].first) ++last;
    const double rank = static_cast<double>(first + last) / 2 + 1;
    const double equal = static_cast<double>(last - first + 1);
    ties += equal * equal * equal - equal;
    for (std::size_t i = first; i <= last; ++i)
      if (all[i].second) rank_sum += rank;
    first = last + 1;
  }
  const double a = static_cast<double>(n), b = static_cast<double>(m), total = a + b;
  const double u = rank_sum - b * (b + 1) / 2;
  const double deviation = std::sqrt(a * b / 12 * (total + 1 - ties / (total * (total - 1))));
  if (deviation == 0 || u <= a * b / 2) return false;
  return std::erfc((u - 0.5 - a * b / 2) / deviation / std::sqrt(2.0)) < 0.05;
}

// conbench: the best repetition against the mean of those of the last commits; red beyond five
// standard deviations.
inline bool five_sigma_is_red(const std::vector<double>& history, double now) {
  const double deviation = deviation_of(history);
  return deviation > 0 && (now - mean_of(history)) / deviation > 5;
}

}  // namespace purlin::guard
