// SPDX-License-Identifier: Apache-2.0
#include "cache/entry/bucket.h"

#include "base/text.h"

#include <algorithm>

namespace purlin::cache {

// "1-16,17-64,65-": from 1, without gaps; the last one may have no end.
Result<BucketRule> BucketRule::parse_ranges(std::string_view text) {
  BucketRule rule(Kind::kRanges, 1);
  std::int64_t next = 1;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parse_int(std::string_view(part).substr(0, std::min(dash, part.size())));
    const std::string_view rest =
        dash == std::string::npos ? "" : std::string_view(part).substr(dash + 1);
    if (!first || *first != next || rule.open_ended_ || dash == std::string::npos)
      return error(Code::kInvalid, "range '{}' of '{}' is to begin at {}", part, text, next);
    if (rest.empty()) {
      rule.open_ended_ = true;
      continue;
    }
    const auto last = parse_int(rest);
    if (!last || *last < *first || *last >= kLargest)
      return error(Code::kInvalid, "range '{}' of '{}' ends before it begins", part, text);
    if (rule.range_count_ == kMaxRanges)
      return error(Code::kInvalid, "'{}' has more than {} ranges", text, kMaxRanges);
    rule.range_ends_[rule.range_count_++] = *last;
    next = *last + 1;
  }
  if (rule.range_count_ == 0)
    return error(Code::kInvalid, "'{}' needs a range with an end, such as 1-64,65-", text);
  return rule;
}

Result<BucketRule> BucketRule::parse(std::string_view text) {
  if (text == "exact") return BucketRule();
  if (text == "pow2") return BucketRule(Kind::kPow2, 1);
  constexpr std::string_view kPrefix = "multiple:";
  if (starts_with(text, kPrefix)) {
    const auto step = parse_int(text.substr(kPrefix.size()));
    if (step && *step >= 1 && *step <= kLargest) return BucketRule(Kind::kMultiple, *step);
  }
  constexpr std::string_view kRangePrefix = "range:";
  if (starts_with(text, kRangePrefix)) return parse_ranges(text.substr(kRangePrefix.size()));
  return error(Code::kInvalid,
               "bucket rule '{}' is none of: exact, pow2, multiple:N with N a positive integer, "
               "range:1-16,17-64,65-",
               text);
}

std::string BucketRule::text() const {
  switch (kind_) {
    case Kind::kExact:
      return "exact";
    case Kind::kPow2:
      return "pow2";
    case Kind::kMultiple:
      return fmt::format("multiple:{}", step_);
    case Kind::kRanges: {
      std::string text = "range:";
      std::int64_t next = 1;
      for (std::size_t i = 0; i < range_count_; ++i) {
        text += fmt::format("{}{}-{}", i > 0 ? "," : "", next, range_ends_[i]);
        next = range_ends_[i] + 1;
      }
      return open_ended_ ? text + fmt::format(",{}-", next) : text;
    }
  }
  return "";
}

std::int64_t BucketRule::range_of(std::int64_t extent) const noexcept {
  for (std::size_t i = 0; i < range_count_; ++i)
    if (extent <= range_ends_[i]) return range_ends_[i];
  return open_ended_ ? range_ends_[range_count_ - 1] + 1 : 0;
}

std::int64_t BucketRule::multiple_of(std::int64_t extent) const noexcept {
  const std::int64_t end = ((extent - 1) / step_ + 1) * step_;
  return end > kLargest ? 0 : end;
}

std::pair<std::int64_t, std::int64_t> BucketRule::bounds(std::int64_t extent) const noexcept {
  const std::int64_t name = apply(extent);
  if (name == 0) return {0, 0};
  switch (kind_) {
    case Kind::kExact:
      return {extent, extent};
    case Kind::kPow2:
      return {name / 2 + 1, name};
    case Kind::kMultiple:
      return {name - step_ + 1, name};
    case Kind::kRanges: {
      std::int64_t first = 1;
      for (std::size_t i = 0; i < range_count_; first = range_ends_[i++] + 1)
        if (extent <= range_ends_[i]) return {first, range_ends_[i]};
      return {first, 0};
    }
  }
  return {0, 0};
}

Result<std::int64_t> bucket_extent(std::string_view rule, std::int64_t extent) {
  PURLIN_ASSIGN(const BucketRule parsed, BucketRule::parse(rule));
  const std::int64_t end = parsed.apply(extent);
  if (end == 0)
    return error(Code::kInvalid, "extent {} has no bucket under '{}'; extents are 1 to 2^62",
                 extent, rule);
  return end;
}

Result<BucketRules> bucket_rules(const KernelSpec& spec, const ProblemShape& problem) {
  BucketRules rules;
  for (const auto& item : problem.items()) {
    const auto rule = spec.bucket.find(item.first);
    if (rule == spec.bucket.end()) {
      rules.emplace_back(item.first, BucketRule());
      continue;
    }
    Result<BucketRule> parsed = BucketRule::parse(rule->second);
    if (!parsed.is_ok())
      return parsed.status().with_context(
          fmt::format("[bucket] of '{}', {}", spec.file, item.first));
    rules.emplace_back(item.first, *parsed);
  }
  for (const auto& [dimension, rule] : spec.bucket)
    if (problem.find(dimension) == nullptr)
      return error(Code::kInvalid, "[bucket] of '{}': the problem has no dimension '{}'", spec.file,
                   dimension);
  return rules;
}

Result<std::string> bucket_of(const BucketRules& rules, const ProblemShape& problem) {
  ProblemShape bucket;
  for (const auto& [dimension, rule] : rules) {
    const std::int64_t* extent = problem.find(dimension);
    if (extent == nullptr)
      return error(Code::kInvalid, "the shape '{}' lacks the dimension {}", problem.text(),
                   dimension);
    const std::int64_t end = rule.apply(*extent);
    if (end == 0)
      return error(Code::kInvalid, "{}={} has no bucket; extents are 1 to 2^62", dimension,
                   *extent);
    bucket.set(dimension, end);
  }
  return bucket.text();
}

Result<std::string> bucket_of(const KernelSpec& spec, const ProblemShape& problem) {
  PURLIN_ASSIGN(const BucketRules rules, bucket_rules(spec, problem));
  return bucket_of(rules, problem);
}

}  // namespace purlin::cache
