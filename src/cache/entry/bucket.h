// SPDX-License-Identifier: Apache-2.0
// Bucket rules: which extents of a dimension share one cache entry.
// - "exact": each extent has its own entry.
// - "pow2": the extents up to the next power of two share one.
// - "multiple:64": the extents up to the next multiple of 64 share one.
// - "range:1-16,17-64,65-": the extents of each given range share one.
//
// A rule is parsed once and applied on the lookup's hot path without allocation or failure.
// Thread-safety: value types. Failure: kInvalid names the rule and what is accepted.
#pragma once

#include "base/status.h"
#include "model/expression/value.h"
#include "model/spec/spec.h"

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin::cache {

class BucketRule {
 public:
  BucketRule() = default;  // exact
  static Result<BucketRule> parse(std::string_view text);
  std::string text() const;
  // What names the bucket `extent` falls into: its largest extent, or its smallest where it has no
  // end. 0 where there is no bucket: extent < 1, past the last range, or the end is past 2^62.
  std::int64_t apply(std::int64_t extent) const noexcept {
    if (extent < 1 || extent > kLargest) return 0;
    if (kind_ == Kind::kExact) return extent;
    if (kind_ == Kind::kPow2)
      return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)));
    if (kind_ == Kind::kRanges) return range_of(extent);
    // A step that is a power of two needs no division.
    if (mask_ < 0) return multiple_of(extent);
    const std::int64_t end = (extent + mask_) & ~mask_;
    return end > kLargest ? 0 : end;
  }
  // The smallest and the largest extent of the bucket `extent` falls into. The largest is 0 if
  // the bucket has no end. Both are 0 if the extent has no bucket.
  std::pair<std::int64_t, std::int64_t> bounds(std::int64_t extent) const noexcept;
  bool operator==(const BucketRule&) const = default;

 private:
  static constexpr std::int64_t kLargest = std::int64_t{1} << 62;
  static constexpr std::size_t kMaxRanges = 12;
  enum class Kind : std::uint8_t { kExact, kPow2, kMultiple, kRanges };
  BucketRule(Kind kind, std::int64_t step) : kind_(kind), step_(step) {
    if (std::has_single_bit(static_cast<std::uint64_t>(step))) mask_ = step - 1;
  }
  static Result<BucketRule> parse_ranges(std::string_view text);
  // Not inline, so that apply() stays short.
  std::int64_t range_of(std::int64_t extent) const noexcept;
  std::int64_t multiple_of(std::int64_t extent) const noexcept;

  Kind kind_ = Kind::kExact;
  bool open_ended_ = false;  // whether a range without an end follows the last one
  std::uint32_t range_count_ = 0;
  std::int64_t step_ = 1;
  std::int64_t mask_ = -1;  // step - 1 where that is a power of two
  std::array<std::int64_t, kMaxRanges> range_ends_{};
};

// Dimension -> rule, for every dimension of a problem, in its order.
using BucketRules = std::vector<std::pair<std::string, BucketRule>>;

Result<std::int64_t> bucket_extent(std::string_view rule, std::int64_t extent);
// kInvalid for a rule of a dimension the problem does not have.
Result<BucketRules> bucket_rules(const KernelSpec& spec, const ProblemShape& problem);
// "M=1024,N=1024,K=512"
Result<std::string> bucket_of(const KernelSpec& spec, const ProblemShape& problem);
Result<std::string> bucket_of(const BucketRules& rules, const ProblemShape& problem);

}  // namespace purlin::cache
