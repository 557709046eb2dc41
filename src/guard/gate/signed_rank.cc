// SPDX-License-Identifier: Apache-2.0
#include "guard/gate/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace purlin::guard {
namespace {

// Twice the midrank of each |difference|, so that ranks shared by ties stay whole numbers.
std::vector<int> doubled_midranks(const std::vector<double>& differences) {
  const std::size_t n = differences.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(differences[a]) < std::abs(differences[b]);
  });
  std::vector<int> ranks(n);
  for (std::size_t first = 0; first < n;) {
    std::size_t last = first;
    while (last + 1 < n &&
           std::abs(differences[order[last + 1]]) == std::abs(differences[order[first]]))
      ++last;
    for (std::size_t i = first; i <= last; ++i)
      ranks[order[i]] = static_cast<int>(first + last + 2);  // 2 * mean of first+1 … last+1
    first = last + 1;
  }
  return ranks;
}

// Law of the sum of `weights` that each count with probability one half.
std::vector<double> sign_law(const std::vector<int>& weights) {
  std::vector<double> law = {1.0};
  for (const int weight : weights) {
    std::vector<double> next(law.size() + static_cast<std::size_t>(weight), 0.0);
    for (std::size_t sum = 0; sum < law.size(); ++sum) {
      next[sum] += 0.5 * law[sum];
      next[sum + static_cast<std::size_t>(weight)] += 0.5 * law[sum];
    }
    law = std::move(next);
  }
  return law;
}

double normal_upper(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

// All (x_i + x_j) / 2 with i <= j.
std::vector<double> walsh_averages(const std::vector<double>& values) {
  std::vector<double> averages;
  averages.reserve(values.size() * (values.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = i; j < values.size(); ++j)
      averages.push_back(values[i] + (values[j] - values[i]) / 2);
  return averages;
}

}  // namespace

SignedRank signed_rank_test(const std::vector<double>& differences) {
  std::vector<double> nonzero;
  for (const double difference : differences)
    if (difference != 0) nonzero.push_back(difference);
  SignedRank result;
  result.used = static_cast<int>(nonzero.size());
  if (nonzero.empty()) return result;

  const std::vector<int> ranks = doubled_midranks(nonzero);
  std::size_t observed = 0;
  for (std::size_t i = 0; i < nonzero.size(); ++i)
    if (nonzero[i] > 0) observed += static_cast<std::size_t>(ranks[i]);
  result.statistic = static_cast<double>(observed) / 2;

  if (result.used > kExactLimit) {
    double mean = 0, variance = 0;
    for (const int rank : ranks) {
      mean += rank / 4.0;
      variance += rank * (rank / 16.0);
    }
    const double deviation = std::sqrt(variance);
    result.p_greater = normal_upper((result.statistic - 0.5 - mean) / deviation);
    result.p_less = normal_upper((mean - result.statistic - 0.5) / deviation);
    return result;
  }
  const std::vector<double> law = sign_law(ranks);
  // Summed from the small end, for the precision of small tails.
  double upper = 0, lower = 0;
  for (std::size_t sum = law.size(); sum-- > observed;) upper += law[sum];
  for (std::size_t sum = 0; sum <= observed; ++sum) lower += law[sum];
  result.p_greater = std::min(upper, 1.0);
  result.p_less = std::min(lower, 1.0);
  return result;
}

double signed_rank_cdf(int n, int statistic) {
  if (statistic < 0) return 0;
  if (statistic >= n * (n + 1) / 2) return 1;
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 1);
  const std::vector<double> law = sign_law(ranks);
  return std::accumulate(law.begin(), law.begin() + statistic + 1, 0.0);
}

double hodges_lehmann(const std::vector<double>& values) {
  return median_of(walsh_averages(values));
}

ExactInterval walsh_interval(const std::vector<double>& values, double tail) {
  std::vector<double> averages = walsh_averages(values);
  std::sort(averages.begin(), averages.end());
  const int n = static_cast<int>(values.size());
  // `cut` averages may be left out at each end: the largest cut with P(W+ < cut) <= tail.
  std::size_t cut = 0;
  double missed = 0;
  if (n <= kExactLimit) {
    std::vector<int> ranks(values.size());
    std::iota(ranks.begin(), ranks.end(), 1);
    const std::vector<double> law = sign_law(ranks);
    while (missed + law[cut] <= tail) missed += law[cut++];
    if (cut == 0) missed = law[0];  // the full range, of confidence 1 - 2 * 2^-n
  } else {
    const double mean = n * (n + 1.0) / 4;
    const double deviation = std::sqrt(mean * (2.0 * n + 1) / 6);
    while (normal_upper((mean - static_cast<double>(cut) - 0.5) / deviation) <= tail) ++cut;
    missed = tail;
  }
  const std::size_t low = cut == 0 ? 0 : cut - 1;
  return {averages[low], averages[averages.size() - 1 - low], 1 - 2 * missed};
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

double quantile_of(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= values.size()) return values.back();
  return values[below] + (values[below + 1] - values[below]) * (place - static_cast<double>(below));
}

}  // namespace purlin::guard
