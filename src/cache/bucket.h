// SPDX-License-Identifier: Apache-2.0
// Bucket rules: which extents of a dimension share one cache entry. "exact": each its own; "pow2":
// up to the next power of two; "multiple:64": up to the next multiple of 64.
//
// A rule is parsed once and applied on the lookup's hot path without allocation or failure.
// Thread-safety: value types. Failure: kInvalid names the rule and what is accepted.
#pragma once

#include "base/status.h"
#include "model/spec.h"
#include "model/value.h"

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
  // The largest extent of the bucket `extent` falls into; 0 where there is none (extent < 1, or the
  // bucket's end is past 2^62).
  std::int64_t apply(std::int64_t extent) const noexcept {
    if (extent < 1 || extent > kLargest) return 0;
    if (kind_ == Kind::kExact) return extent;
    if (kind_ == Kind::kPow2)
      return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)));
    const std::int64_t steps = (extent - 1) / step_ + 1;
    return steps > kLargest / step_ ? 0 : steps * step_;
  }
  bool operator==(const BucketRule&) const = default;

 private:
  static constexpr std::int64_t kLargest = std::int64_t{1} << 62;
  enum class Kind : std::uint8_t { kExact, kPow2, kMultiple };
  BucketRule(Kind kind, std::int64_t step) : kind_(kind), step_(step) {}
  Kind kind_ = Kind::kExact;
  std::int64_t step_ = 1;
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
