// SPDX-License-Identifier: Apache-2.0
// Sketch: a mergeable histogram of durations with logarithmic buckets (DDSketch: Masson, Rim, Lee,
// VLDB 2019). Quantiles are within kRelativeError of the true sample; count and total are exact.
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
  static constexpr double kRelativeError = 0.005;
  static constexpr int kMaxBuckets = 3500;

  void add(double ns, double weight = 1);
  void merge(const Sketch& other);
  // Every duration times `time`, every weight times `weight`; both above 0.
  Sketch scaled(double time, double weight) const;

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
  bool restore(int first_bucket, std::vector<double> weights, double total, double min, double max);

 private:
  static int bucket_of(double ns);
  static double value_of(int bucket);
  void cover(int low, int high);
  int first_ = 0;
  std::vector<double> weights_;
  double count_ = 0, total_ = 0, min_ = 0, max_ = 0;
};

}  // namespace purlin
