// SPDX-License-Identifier: Apache-2.0
#include "runtime/slowdown_detector.h"

#include <algorithm>
#include <cmath>

namespace purlin::runtime {
namespace {

constexpr double kWildest = 1.0;   // A ratio beyond e is an outlier, and is counted as e.
constexpr double kFinest = 0.005;  // Noise below half a percent is not worth resolving.
constexpr double kSpread = 1.5;    // Full stakes at this multiple of the mean deviation.
constexpr double kMemory = 256;    // Samples after which the scale forgets.

}  // namespace

SlowdownDetector::SlowdownDetector(Options options)
    : options_(options), shift_(std::log1p(options.margin)) {}

bool SlowdownDetector::add(double log_ratio) {
  if (!std::isfinite(log_ratio)) return false;
  recent_[samples_ % kRecent] = log_ratio;
  ++samples_;
  const double y = std::clamp(log_ratio - shift_, -kWildest, kWildest);
  // The scale may depend on what was before this sample only, or the bet would not be fair.
  const double scale = std::max(kFinest, kSpread * scale_sum_ / scale_count_);
  const double gain = std::clamp(y / scale, -1.0, 1.0);
  double sum = 0;
  for (std::size_t i = 0; i < kStakes.size(); ++i) {
    evidence_[i] = (evidence_[i] + 1) * (1 + kStakes[i] * gain);
    sum += evidence_[i];
  }
  scale_sum_ += std::abs(y);
  if (++scale_count_ > kMemory) {
    scale_sum_ /= 2;
    scale_count_ /= 2;
  }
  if (sum / static_cast<double>(kStakes.size()) < options_.samples_per_alarm) return false;
  evidence_.fill(0);
  return true;
}

double SlowdownDetector::ratio() const {
  std::array<double, kRecent> sorted = recent_;
  const auto count = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(samples_, kRecent));
  if (count == 0) return 1;
  std::nth_element(sorted.begin(), sorted.begin() + count / 2, sorted.begin() + count);
  return std::exp(sorted[static_cast<std::size_t>(count / 2)]);
}

}  // namespace purlin::runtime
