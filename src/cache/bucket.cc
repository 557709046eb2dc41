// SPDX-License-Identifier: Apache-2.0
#include "cache/bucket.h"

#include "base/text.h"

namespace purlin::cache {
Result<BucketRule> BucketRule::parse(std::string_view text) {
  if (text == "exact") return BucketRule();
  if (text == "pow2") return BucketRule(Kind::kPow2, 1);
  constexpr std::string_view kPrefix = "multiple:";
  if (starts_with(text, kPrefix)) {
    const auto step = parse_int(text.substr(kPrefix.size()));
    if (step && *step >= 1 && *step <= kLargest) return BucketRule(Kind::kMultiple, *step);
  }
  return error(Code::kInvalid,
               "bucket rule '{}' is none of: exact, pow2, multiple:N with N a positive integer",
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
  }
  return "";
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
