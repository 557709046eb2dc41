// SPDX-License-Identifier: Apache-2.0
// A sketch as bytes, in batches and in SQLite (docs/formats/batch.md): about 15 for a kernel whose
// launches take one to three buckets. BucketSum adds many without making a sketch of each.
//
// Pure functions and a value; one thread. After a failed add() the sum is of no use.
#pragma once

#include "model/profile/sketch.h"
#include "profile/format/wire.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::store {

void write_sketch(profile::wire::Encoder& out, const Sketch& sketch);
std::string sketch_bytes(const Sketch& sketch);
// `budget`: buckets that may still be allocated.
bool read_sketch(profile::wire::Decoder& in, Sketch& sketch, std::size_t& budget);

// Sketches added up. The result has the lowest of their scales, and at most `scale`.
class BucketSum {
 public:
  explicit BucketSum(int scale = Sketch::kScale) : scale_(scale) {}
  bool add(profile::wire::Decoder& in);  // false: damaged
  bool add(std::string_view bytes);
  void add(const Sketch& sketch);
  bool empty() const { return weights_.empty(); }
  Sketch sketch() const;

 private:
  void lower_to(int scale);
  void put(int bucket, double weight);
  int scale_, first_ = 0;
  std::vector<double> weights_;
  double total_ = 0, min_ = 0, max_ = 0;
};

}  // namespace purlin::store
