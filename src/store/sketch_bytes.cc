// SPDX-License-Identifier: Apache-2.0
#include "store/sketch_bytes.h"

#include <algorithm>
#include <cmath>

namespace purlin::store {
namespace {

using profile::wire::Decoder;
using profile::wire::Encoder;

// The head: which numbers are whole, and the scale above.
constexpr unsigned kWholeWeights = 1, kWholeTimes = 2, kScaleShift = 2;

bool is_whole(double value) { return value >= 0 && value < 0x1p53 && value == std::floor(value); }

void write_number(Encoder& out, bool whole, double value) {
  if (whole) {
    out.varint(static_cast<std::uint64_t>(value));
  } else {
    out.real(value);
  }
}

double read_number(Decoder& in, bool whole) {
  return whole ? static_cast<double>(in.varint()) : in.real();
}

// One bucket of `steps` scales lower.
int lower_bucket(int bucket, int steps) { return bucket == 0 ? 0 : ((bucket - 1) >> steps) + 1; }

struct SketchHead {
  bool whole_weights = false;
  int scale = 0;
  std::size_t used = 0;
  double total = 0, min = 0, max = 0;
};

// False where it cannot be a sketch's; used == 0: an empty sketch, nothing follows.
bool read_head(Decoder& in, SketchHead& head) {
  const unsigned first = in.u8();
  head.whole_weights = (first & kWholeWeights) != 0;
  head.scale = static_cast<int>(first >> kScaleShift);
  head.used = in.count(2);
  if (in.failed() || head.scale > Sketch::kScale) return false;
  if (head.used == 0) return true;
  const bool whole = (first & kWholeTimes) != 0;
  head.total = read_number(in, whole);
  head.min = read_number(in, whole);
  head.max = read_number(in, whole);
  return !in.failed() && std::isfinite(head.total) && head.min >= 0 && head.max >= head.min &&
         std::isfinite(head.max);
}

// Calls put(bucket, weight) for each bucket in ascending order; false where one is impossible.
template <class Put>
bool read_buckets(Decoder& in, const SketchHead& head, Put put) {
  std::uint64_t bucket = 0;
  for (std::size_t i = 0; i < head.used; ++i) {
    const std::uint64_t gap = in.varint();
    const double weight = read_number(in, head.whole_weights);
    if (in.failed() || gap >= Sketch::kMaxBuckets || (i > 0 && gap == 0)) return false;
    bucket += gap;
    if (bucket >= Sketch::kMaxBuckets || !(weight > 0) || !std::isfinite(weight)) return false;
    if (!put(static_cast<int>(bucket), weight)) return false;
  }
  return true;
}

}  // namespace

void write_sketch(Encoder& out, const Sketch& sketch) {
  std::size_t used = 0;
  bool weights = true;
  for (const double weight : sketch.buckets()) {
    used += weight > 0 ? 1 : 0;
    weights = weights && is_whole(weight);
  }
  const bool times =
      is_whole(sketch.total_ns()) && is_whole(sketch.min_ns()) && is_whole(sketch.max_ns());
  out.u8(static_cast<std::uint8_t>((weights ? kWholeWeights : 0) | (times ? kWholeTimes : 0) |
                                   static_cast<unsigned>(sketch.scale()) << kScaleShift));
  out.varint(used);
  if (used == 0) return;
  for (const double time : {sketch.total_ns(), sketch.min_ns(), sketch.max_ns()})
    write_number(out, times, time);
  int previous = 0;
  for (std::size_t i = 0; i < sketch.buckets().size(); ++i) {
    const double weight = sketch.buckets()[i];
    if (!(weight > 0)) continue;
    const int bucket = sketch.first_bucket() + static_cast<int>(i);
    out.varint(static_cast<std::uint64_t>(bucket - previous));
    write_number(out, weights, weight);
    previous = bucket;
  }
}

std::string sketch_bytes(const Sketch& sketch) {
  Encoder out;
  write_sketch(out, sketch);
  return out.bytes();
}

bool read_sketch(Decoder& in, Sketch& sketch, std::size_t& budget) {
  sketch = Sketch();
  SketchHead head;
  if (!read_head(in, head)) return false;
  if (head.used == 0) return true;
  int first = -1;
  std::vector<double> weights;
  const bool fits = read_buckets(in, head, [&](int bucket, double weight) {
    if (first < 0) first = bucket;
    const std::size_t size = static_cast<std::size_t>(bucket - first) + 1;
    if (size - weights.size() > budget) return false;
    budget -= size - weights.size();
    weights.resize(size, 0);
    weights.back() = weight;
    return true;
  });
  return fits &&
         sketch.restore(first, std::move(weights), head.total, head.min, head.max, head.scale);
}

bool BucketSum::add(Decoder& in) {
  SketchHead head;
  if (!read_head(in, head)) return false;
  if (head.used == 0) return true;
  lower_to(head.scale);
  const bool first = weights_.empty();
  const int steps = head.scale - scale_;
  const int most = lower_bucket(Sketch::kMaxBuckets - 1, Sketch::kScale - head.scale);
  if (!read_buckets(in, head, [&](int bucket, double weight) {
        if (bucket > most) return false;
        put(lower_bucket(bucket, steps), weight);
        return true;
      }))
    return false;
  min_ = first ? head.min : std::min(min_, head.min);
  max_ = std::max(max_, head.max);
  total_ += head.total;
  return true;
}

bool BucketSum::add(std::string_view bytes) {
  Decoder in(bytes);
  return add(in) && in.at_end();
}

void BucketSum::add(const Sketch& sketch) {
  if (sketch.empty()) return;
  lower_to(sketch.scale());
  const bool first = weights_.empty();
  for (std::size_t i = 0; i < sketch.buckets().size(); ++i)
    if (sketch.buckets()[i] > 0)
      put(lower_bucket(sketch.first_bucket() + static_cast<int>(i), sketch.scale() - scale_),
          sketch.buckets()[i]);
  min_ = first ? sketch.min_ns() : std::min(min_, sketch.min_ns());
  max_ = std::max(max_, sketch.max_ns());
  total_ += sketch.total_ns();
}

Sketch BucketSum::sketch() const {
  Sketch out;
  if (!weights_.empty()) (void)out.restore(first_, weights_, total_, min_, max_, scale_);
  return out;
}

void BucketSum::lower_to(int scale) {
  if (scale >= scale_) return;
  Sketch reduced = sketch();
  reduced.reduce_to(scale);
  scale_ = scale;
  first_ = reduced.first_bucket();
  weights_ = reduced.buckets();
}

void BucketSum::put(int bucket, double weight) {
  if (weights_.empty()) {
    first_ = bucket;
    weights_.push_back(weight);
    return;
  }
  if (bucket < first_) {
    weights_.insert(weights_.begin(), static_cast<std::size_t>(first_ - bucket), 0);
    first_ = bucket;
  }
  const auto at = static_cast<std::size_t>(bucket - first_);
  if (at >= weights_.size()) weights_.resize(at + 1, 0);
  weights_[at] += weight;
}

}  // namespace purlin::store
