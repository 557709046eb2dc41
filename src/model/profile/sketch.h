// SPDX-License-Identifier: Apache-2.0
// Sketch: a mergeable histogram of durations with logarithmic buckets. Count, total, minimum and
// maximum are exact. Quantiles are within relative_error(scale()) of the true sample.
//
// The buckets are those of OpenTelemetry's exponential histograms and of Prometheus' native
// histograms: at scale s, bucket i >= 1 holds durations in (2^((i-1)/2^s), 2^(i/2^s)] ns, which is
// OpenTelemetry's index i - 1. Bucket 0 holds durations up to 1 ns. One scale lower, two buckets
// are one: reduce_to loses resolution and nothing else. Scale 7 has an error of 0.27 %, scale 6 of
// 0.54 %, scale 5 of 1.1 %.
//
// Weighted: a sample seen once in N represents N. Memory is bounded: durations from 1 ns to 10^6 s
// take at most kMaxBuckets buckets, and only the span in use is kept. merge is associative and
// commutative. Uses only the standard library: it is compiled into the capture libraries.
// Thread-safety: none; one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace purlin {

class Sketch {
 public:
  static constexpr int kScale = 7;                            // of a new sketch, the finest
  static constexpr int kMaxBuckets = 50 * (1 << kScale) + 1;  // up to 2^50 ns
  static constexpr double kRelativeError = 0.002707599557;    // at kScale: (g - 1) / (g + 1)
  static double relative_error(int scale);                    // g = 2^(1/2^scale)
  // The bounds of a bucket in ns: (lower, upper]. Both of bucket 0 are up to 1: (0, 1].
  static double lower_bound(int bucket, int scale = kScale);
  static double upper_bound(int bucket, int scale = kScale);

  void add(double ns, double weight = 1);
  // Of two scales, the result has the lower.
  void merge(const Sketch& other);
  // Every duration times `time`, every weight times `weight`; both above 0. At scale kScale.
  Sketch scaled(double time, double weight) const;
  // To a scale from 0 to kScale. A scale above scale() changes nothing.
  void reduce_to(int scale);

  int scale() const { return scale_; }
  double count() const { return count_; }     // sum of weights
  double total_ns() const { return total_; }  // weighted sum
  double min_ns() const { return count_ > 0 ? min_ : 0; }
  double max_ns() const { return count_ > 0 ? max_ : 0; }
  double mean_ns() const { return count_ > 0 ? total_ / count_ : 0; }
  double quantile(double q) const;  // q in [0, 1]; 0 when empty
  bool empty() const { return count_ <= 0; }

  // Persistence: buckets as (first bucket's index, weights), see docs/formats/profile.md.
  int first_bucket() const { return first_; }
  const std::vector<double>& buckets() const { return weights_; }
  // False where the parts do not belong together (from a damaged file); the sketch is then empty.
  bool restore(int first_bucket, std::vector<double> weights, double total, double min, double max,
               int scale = kScale);

 private:
  int bucket_of(double ns) const;
  void cover(int low, int high);
  int scale_ = kScale;
  int first_ = 0;
  std::vector<double> weights_;
  double count_ = 0, total_ = 0, min_ = 0, max_ = 0;
};

}  // namespace purlin
