// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sketch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace purlin {
namespace {

constexpr double kGamma = (1 + Sketch::kRelativeError) / (1 - Sketch::kRelativeError);
const double kLogGamma = std::log(kGamma);

// Bucket i holds (gamma^(i-1), gamma^i]; its representative 2 gamma^i / (gamma + 1) is within the
// relative error of every member. Everything up to 1 ns is bucket 0. This is the definition.
int bucket_by_logarithm(double ns) {
  if (!(ns > 1)) return 0;
  return std::min(Sketch::kMaxBuckets - 1, static_cast<int>(std::ceil(std::log(ns) / kLogGamma)));
}

// The definition without its logarithm. A double's exponent and the first bits of its mantissa name
// a cell. A cell is narrower than a bucket, so at most one bound lies in it. The cell's first
// bucket and one comparison give the bucket.
class BucketTable {
 public:
  BucketTable() {
    for (int i = 0; i < Sketch::kMaxBuckets; ++i) bounds_[index(i)] = bound_of(i);
    bounds_.back() = std::numeric_limits<double>::infinity();
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      const std::uint64_t bits = (cell << kShift) + kOne;
      first_[cell] = static_cast<std::uint16_t>(bucket_by_logarithm(as_double(bits)));
    }
  }

  int bucket_of(double ns) const {
    if (!(ns > 1)) return 0;
    std::uint64_t bits = 0;
    std::memcpy(&bits, &ns, sizeof bits);
    const std::uint64_t cell = (bits - kOne) >> kShift;
    if (cell >= kCells) return Sketch::kMaxBuckets - 1;
    const std::size_t first = first_[cell];
    return static_cast<int>(first + (ns > bounds_[first] ? 1 : 0));
  }

 private:
  static constexpr int kShift = 52 - 7;  // 2^7 cells in an octave of 69 buckets
  static constexpr std::uint64_t kOne = std::uint64_t{1023} << 52;  // 1.0
  static constexpr std::size_t kCells = 51 << 7;                    // up to 2^51 ns

  static std::size_t index(int bucket) { return static_cast<std::size_t>(bucket); }
  static double as_double(std::uint64_t bits) {
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  // The largest double of a bucket, by bisection between doubles around it.
  static double bound_of(int bucket) {
    const double guess = std::exp(bucket * kLogGamma);
    std::uint64_t low = 0;
    std::memcpy(&low, &guess, sizeof low);
    std::uint64_t high = low + 256;
    low -= 256;
    while (high - low > 1) {
      const std::uint64_t middle = low + (high - low) / 2;
      (bucket_by_logarithm(as_double(middle)) <= bucket ? low : high) = middle;
    }
    return as_double(low);
  }

  std::array<double, Sketch::kMaxBuckets> bounds_;
  std::array<std::uint16_t, kCells> first_;
};

const BucketTable& bucket_table() {
  static const BucketTable table;
  return table;
}

}  // namespace

int Sketch::bucket_of(double ns) { return bucket_table().bucket_of(ns); }

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
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(weight > 0 && weight < kInfinity && ns > -kInfinity && ns < kInfinity)) return;
  ns = std::max(ns, 0.0);
  const int bucket = bucket_of(ns);
  // Below first_ the difference wraps to a large number.
  auto at = static_cast<std::size_t>(bucket) - static_cast<std::size_t>(first_);
  if (at >= weights_.size()) {
    cover(bucket, bucket);
    at = static_cast<std::size_t>(bucket - first_);
  }
  weights_[at] += weight;
  min_ = count_ > 0 ? std::min(min_, ns) : ns;
  max_ = std::max(max_, ns);
  count_ += weight;
  total_ += ns * weight;
}

void Sketch::merge(const Sketch& other) {
  if (other.empty()) return;
  cover(other.first_, other.first_ + static_cast<int>(other.weights_.size()) - 1);
  double* into = weights_.data() + (other.first_ - first_);
  const double* from = other.weights_.data();
  for (std::size_t i = 0; i < other.weights_.size(); ++i) into[i] += from[i];
  min_ = count_ > 0 ? std::min(min_, other.min_) : other.min_;
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  total_ += other.total_;
}

Sketch Sketch::scaled(double time, double weight) const {
  Sketch out;
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (weights_[i] > 0)
      out.add(value_of(first_ + static_cast<int>(i)) * time, weights_[i] * weight);
  if (out.empty()) return out;
  out.total_ = total_ * time * weight;
  out.min_ = min_ * time, out.max_ = max_ * time;
  return out;
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
