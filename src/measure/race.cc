// SPDX-License-Identifier: Apache-2.0
#include "measure/race.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace purlin::measure {
namespace {

// While the noise is not known: two samples this much slower than the limit are not noise.
// Run-to-run variation stays below 8 % at the 95th percentile, except on broken set-ups.
constexpr double kBlindMargin = 0.10;
constexpr int kBlindSamples = 2;
// With known noise, by how many samples there are. A lone sample may be the one in twenty that
// something else disturbed, so it must be further out.
constexpr double kSigmas[] = {6.0, 3.0, 2.0};
constexpr double kMin[] = {0.03, 0.01, 0.005};  // of the median, for any noise
constexpr std::size_t kIntervalSamples = 6;     // the fewest that bound a median at 95 %
constexpr std::size_t kKernels = 4;             // the fewest that say what noise is usual
constexpr std::size_t kMedianSamples = 3;       // the fewest whose median one disturbed is not
constexpr double kMedianNoise = 1.25;  // a median's, as a multiple of a mean's (normal noise)

double margin(std::size_t have, double noise) {
  const std::size_t i = std::min<std::size_t>(have, 3) - 1;
  return std::max(kSigmas[i] * noise, kMin[i]);
}

double fastest_of_race_ms(const std::vector<Sample>& samples) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Sample& sample : samples) fastest = std::min(fastest, sample.ms);
  return fastest;
}

// The median of so many is further behind than the noise of both medians, its own and that of the
// best (which was sampled min_samples times at least), explains in 39 of 40 cases.
bool is_median_behind(const std::vector<Sample>& samples, const Policy& policy) {
  if (policy.noise <= 0 || samples.size() < kMedianSamples) return false;
  const double own = 1.0 / static_cast<double>(samples.size());
  const double best = 1.0 / std::max(policy.min_samples, 1);
  const double margin = 2 * kMedianNoise * policy.noise * std::sqrt(own + best);
  return median_ms(samples) > policy.give_up_ms * (1 + std::max(margin, kMin[2]));
}

bool is_hopeless(const std::vector<Sample>& samples, const Policy& policy) {
  if (policy.give_up_ms <= 0 || samples.empty()) return false;
  if (is_median_behind(samples, policy)) return true;
  const double behind = fastest_of_race_ms(samples) / policy.give_up_ms - 1;
  if (policy.noise > 0) {
    if (behind > margin(samples.size(), policy.noise)) return true;
  } else if (samples.size() >= kBlindSamples && behind > kBlindMargin) {
    return true;
  }
  return samples.size() >= kIntervalSamples && median_interval_ms(samples).low > policy.give_up_ms;
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const std::size_t low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

Standing standing(const std::vector<Sample>& samples, const Policy& policy) {
  if (is_hopeless(samples, policy)) return Standing::kHopeless;
  if (static_cast<int>(samples.size()) < std::max(policy.min_samples, 1)) return Standing::kOpen;
  const Interval interval = median_interval_ms(samples);
  return interval.high - interval.low <= 2 * policy.target_error * median_ms(samples)
             ? Standing::kSettled
             : Standing::kOpen;
}

int samples_wanted(std::size_t have, const Policy& policy) {
  const int most = std::max(policy.max_samples, 1);
  const int least = std::clamp(policy.min_samples, 1, most);
  const int made = static_cast<int>(have);
  int wanted = made < least ? least - made : std::max(1, made / 4);
  if (policy.give_up_ms > 0) {
    if (policy.noise > 0 && made < 3) wanted = 1;
    if (policy.noise > 0 && made >= 3 && made < least) wanted = std::min(wanted, 2);
    if (policy.noise <= 0 && made < kBlindSamples) wanted = kBlindSamples - made;
  }
  return std::max(1, std::min(wanted, most - made));
}

double relative_noise(const std::vector<Sample>& samples) {
  if (samples.size() < 5) return 0;
  const double median = median_ms(samples);
  if (median <= 0) return 0;
  std::vector<double> away;
  away.reserve(samples.size());
  for (const Sample& sample : samples) away.push_back(std::fabs(sample.ms / median - 1));
  std::sort(away.begin(), away.end());
  // Of a normal distribution both are its standard deviation: half of it lies within 0.6745 of
  // them, nine tenths within 1.645.
  return std::max(quantile(away, 0.5) / 0.6745, quantile(away, 0.9) / 1.645);
}

double pooled_noise(std::vector<double> seen) {
  if (seen.empty()) return 0;
  std::sort(seen.begin(), seen.end());
  // Few kernels are not enough to predict the noise of the next one.
  const double noise = seen.size() < kKernels ? 2 * seen.back() : quantile(seen, 0.75);
  // A clock of low resolution shows no noise at all, so 0 here does not mean "not known".
  return std::clamp(noise, 1e-4, kMaxNoise);
}

}  // namespace purlin::measure
