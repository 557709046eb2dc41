// SPDX-License-Identifier: Apache-2.0
// Exact inference on paired differences: Wilcoxon's signed-rank test, the Hodges-Lehmann estimate
// and its interval.
//
// Exact by randomisation: a coin decides the order inside each pair. If the arms are alike, a
// flipped sign of a difference leaves its law unchanged, for any drift, tails or autocorrelation of
// the machine. Nothing here assumes a distribution. docs/concepts/gate-statistics.md has the
// derivation. Thread-safety: pure functions.
#pragma once

#include <vector>

namespace purlin::guard {

struct SignedRank {
  int used = 0;          // differences other than zero; zeros carry no information
  double statistic = 0;  // sum of the (mid)ranks of the positive differences
  double p_greater = 1;  // P(a statistic this large | differences centred on zero)
  double p_less = 1;     // the same for this small
};

// Exact for any ties: the null law is built over the actual midranks, by dynamic programming
// over the signs, for up to kExactLimit differences; the normal approximation beyond.
inline constexpr int kExactLimit = 400;
SignedRank signed_rank_test(const std::vector<double>& differences);

// P(W+ <= statistic) without ties, n >= 0.
double signed_rank_cdf(int n, int statistic);

// Median of the pairwise means (x_i + x_j) / 2, i <= j: a centre that one outlier cannot move.
// REQUIRES: not empty.
double hodges_lehmann(const std::vector<double>& values);

// The interval of centres that the signed-rank test does not reject. Each side misses the centre
// with at most `tail`. With too few values it is their full range, with a lower `confidence`.
// REQUIRES: not empty, 0 < tail < 0.5.
struct ExactInterval {
  double low = 0, high = 0;
  double confidence = 0;  // two-sided, achieved
};
ExactInterval walsh_interval(const std::vector<double>& values, double tail);

// Midpoint of the two middle values for even counts. REQUIRES: not empty.
double median_of(std::vector<double> values);
// By linear interpolation between order statistics, share in [0, 1]. REQUIRES: not empty.
double quantile_of(std::vector<double> values, double share);

}  // namespace purlin::guard
