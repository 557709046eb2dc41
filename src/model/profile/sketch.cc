// SPDX-License-Identifier: Apache-2.0
#include "model/profile/sketch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace purlin {
namespace {

// 2^(bucket / 2^scale). Exact where it is a whole power of two.
double power(int bucket, int scale) {
  return std::exp2(static_cast<double>(bucket) / static_cast<double>(1 << scale));
}

// A bucket at kScale, one or more scales lower.
int lower_bucket(int bucket, int scale) {
  return bucket == 0 ? 0 : ((bucket - 1) >> (Sketch::kScale - scale)) + 1;
}

int max_buckets(int scale) { return lower_bucket(Sketch::kMaxBuckets - 1, scale) + 1; }

// Within the relative error of every member of the bucket: 2 g^i / (g + 1).
double value_of(int bucket, int scale) { return 2 * power(bucket, scale) / (power(1, scale) + 1); }

// The bucket of a duration at kScale. A double's exponent and the first bits of its mantissa name a
// cell. A cell is narrower than a bucket, so at most one bound lies in it. The cell's first bucket
// and one comparison give the bucket.
class BucketTable {
 public:
  BucketTable() {
    for (int i = 0; i < Sketch::kMaxBuckets; ++i) bounds_[index(i)] = power(i, Sketch::kScale);
    bounds_.back() = std::numeric_limits<double>::infinity();
    std::size_t bucket = 0;
    for (std::size_t cell = 0; cell < kCells; ++cell) {
      const double low = as_double((std::uint64_t{cell} << kShift) + kOne);
      while (bounds_[bucket] < low) ++bucket;
      first_[cell] = static_cast<std::uint16_t>(bucket);
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
  static constexpr int kShift = 52 - 8;  // 2^8 cells in an octave of 2^7 buckets
  static constexpr std::uint64_t kOne = std::uint64_t{1023} << 52;  // 1.0
  static constexpr std::size_t kCells = 50 << 8;                    // up to 2^50 ns

  static std::size_t index(int bucket) { return static_cast<std::size_t>(bucket); }
  static double as_double(std::uint64_t bits) {
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  std::array<double, Sketch::kMaxBuckets> bounds_;
  std::array<std::uint16_t, kCells> first_;
};

const BucketTable& bucket_table() {
  static const BucketTable table;
  return table;
}

}  // namespace

double Sketch::relative_error(int scale) {
  const double growth = power(1, scale);
  return (growth - 1) / (growth + 1);
}

double Sketch::lower_bound(int bucket, int scale) {
  return bucket <= 0 ? 0 : power(bucket - 1, scale);
}

double Sketch::upper_bound(int bucket, int scale) { return power(std::max(bucket, 0), scale); }

int Sketch::bucket_of(double ns) const {
  const int bucket = bucket_table().bucket_of(ns);
  return scale_ == kScale ? bucket : lower_bucket(bucket, scale_);
}

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
  if (other.scale_ > scale_) {
    Sketch reduced = other;
    reduced.reduce_to(scale_);
    return merge(reduced);
  }
  reduce_to(other.scale_);
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
      out.add(value_of(first_ + static_cast<int>(i), scale_) * time, weights_[i] * weight);
  if (out.empty()) return out;
  out.total_ = total_ * time * weight;
  out.min_ = min_ * time, out.max_ = max_ * time;
  return out;
}

void Sketch::reduce_to(int scale) {
  scale = std::max(scale, 0);
  if (scale >= scale_) return;
  const int steps = scale_ - scale;
  const auto lower = [steps](int bucket) { return bucket == 0 ? 0 : ((bucket - 1) >> steps) + 1; };
  scale_ = scale;
  if (weights_.empty()) return;
  const int first = lower(first_);
  std::vector<double> weights(
      static_cast<std::size_t>(lower(first_ + static_cast<int>(weights_.size()) - 1) - first + 1));
  for (std::size_t i = 0; i < weights_.size(); ++i)
    weights[static_cast<std::size_t>(lower(first_ + static_cast<int>(i)) - first)] += weights_[i];
  first_ = first;
  weights_ = std::move(weights);
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
      return std::clamp(value_of(first_ + static_cast<int>(i), scale_), min_, max_);
  }
  return max_;
}

bool Sketch::restore(int first_bucket, std::vector<double> weights, double total, double min,
                     double max, int scale) {
  *this = Sketch();
  if (scale < 0 || scale > kScale) return false;
  if (weights.empty()) return total == 0;
  const int most = max_buckets(scale);
  const bool fits = first_bucket >= 0 && first_bucket < most &&
                    weights.size() <= static_cast<std::size_t>(most - first_bucket);
  if (!fits || !std::isfinite(total) || !(min >= 0) || !(max >= min) || !std::isfinite(max))
    return false;
  double count = 0;
  for (double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight)) return false;
    count += weight;
  }
  if (!(count > 0)) return false;
  scale_ = scale, first_ = first_bucket;
  weights_ = std::move(weights);
  count_ = count, total_ = total, min_ = min, max_ = max;
  return true;
}

}  // namespace purlin
