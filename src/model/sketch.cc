// SPDX-License-Identifier: Apache-2.0
#include "model/sketch.h"

#include <algorithm>
#include <cmath>

namespace purlin {
namespace {

constexpr double kGamma = (1 + Sketch::kRelativeError) / (1 - Sketch::kRelativeError);
const double kLogGamma = std::log(kGamma);

}  // namespace

// Bucket i holds (gamma^(i-1), gamma^i]; its representative 2 gamma^i / (gamma + 1) is within the
// relative error of every member. Everything up to 1 ns is bucket 0.
int Sketch::bucket_of(double ns) {
  if (!(ns > 1)) return 0;
  return std::min(kMaxBuckets - 1, static_cast<int>(std::ceil(std::log(ns) / kLogGamma)));
}

double Sketch::value_of(int bucket) { return 2 * std::exp(bucket * kLogGamma) / (kGamma + 1); }

void Sketch::cover(int low, int high) {
  if (weights_.empty()) {
    first_ = low;
    weights_.assign(static_cast<std::size_t>(high - low + 1), 0);
    return;
  }
  if (low < first_) {
    weights_.insert(weights_.begin(), static_cast<std::size_t>(first_ - low), 0);
    first_ = low;
  }
  const std::size_t needed = static_cast<std::size_t>(high - first_ + 1);
  if (needed > weights_.size()) weights_.resize(needed, 0);
}

void Sketch::add(double ns, double weight) {
  if (!(weight > 0) || !std::isfinite(ns) || !std::isfinite(weight)) return;
  ns = std::max(ns, 0.0);
  const int bucket = bucket_of(ns);
  cover(bucket, bucket);
  weights_[static_cast<std::size_t>(bucket - first_)] += weight;
  min_ = count_ > 0 ? std::min(min_, ns) : ns;
  max_ = count_ > 0 ? std::max(max_, ns) : ns;
  count_ += weight;
  total_ += ns * weight;
}

void Sketch::merge(const Sketch& other) {
  if (other.empty()) return;
  cover(other.first_, other.first_ + static_cast<int>(other.weights_.size()) - 1);
  for (std::size_t i = 0; i < other.weights_.size(); ++i)
    weights_[static_cast<std::size_t>(other.first_ - first_) + i] += other.weights_[i];
  min_ = count_ > 0 ? std::min(min_, other.min_) : other.min_;
  max_ = count_ > 0 ? std::max(max_, other.max_) : other.max_;
  count_ += other.count_;
  total_ += other.total_;
}

double Sketch::quantile(double q) const {
  if (count_ <= 0) return 0;
  if (q <= 0) return min_;
  if (q >= 1) return max_;
  const double rank = q * count_;
  double seen = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    seen += weights_[i];
    if (seen >= rank && weights_[i] > 0)
      return std::clamp(value_of(first_ + static_cast<int>(i)), min_, max_);
  }
  return max_;
}

bool Sketch::restore(int first_bucket, std::vector<double> weights, double total, double min,
                     double max) {
  *this = Sketch();
  if (weights.empty()) return total == 0;
  const bool fits =
      first_bucket >= 0 && weights.size() <= static_cast<std::size_t>(kMaxBuckets - first_bucket);
  if (!fits || !std::isfinite(total) || !(min >= 0) || !(max >= min) || !std::isfinite(max))
    return false;
  double count = 0;
  for (double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight)) return false;
    count += weight;
  }
  if (!(count > 0)) return false;
  first_ = first_bucket;
  weights_ = std::move(weights);
  count_ = count, total_ = total, min_ = min, max_ = max;
  return true;
}

}  // namespace purlin
