// SPDX-License-Identifier: Apache-2.0
// Change points of a series of measurements over builds: where its level moved and stayed moved.
//
// Circular binary segmentation (Olshen, Venkatraman et al., Biostatistics 2004) of log values, so
// that a magnitude is a ratio. Significance comes from permuting blocks of the series as long as
// its own autocorrelation asks for: a t-test on the best split, as Hunter does it, reports changes
// in 43 % of unchanged AR(0.5) series of 50 points. Figures: docs/concepts/history.md. Annotations,
// never a gate: a paired run decides.
//
// Pure functions, deterministic under a seed. Cost: permutations x n^2 per segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin::guard {

struct ChangePointOptions {
  double alpha = 0.01;          // per test; across series use benjamini_hochberg
  double min_magnitude = 0.02;  // |after / before - 1| of the medians
  int min_segment = 3;          // points on each side
  int permutations = 999;
  std::size_t max_points = 400;  // only the latest are looked at
  std::uint64_t seed = 1;
};

struct ChangePoint {
  std::size_t index = 0;           // first point of the new level
  double ratio = 1;                // median after / median before
  double before = 0, after = 0;    // medians of the segments around it
  std::size_t begin = 0, end = 0;  // those segments: [begin, index) and [index, end)
  double p_value = 1;
};

// Values must be positive. In the order of the series; empty where nothing moved.
std::vector<ChangePoint> find_change_points(const std::vector<double>& values,
                                            const ChangePointOptions& options);

// Which of these p-values stand when a share `rate` of false discoveries is allowed.
std::vector<bool> benjamini_hochberg(const std::vector<double>& p_values, double rate);

}  // namespace purlin::guard
