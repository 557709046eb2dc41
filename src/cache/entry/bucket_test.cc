// SPDX-License-Identifier: Apache-2.0
#include "cache/entry/bucket.h"

#include <gtest/gtest.h>

namespace purlin::cache {
namespace {

TEST(BucketRule, RoundsUp) {
  EXPECT_EQ(*bucket_extent("exact", 1000), 1000);
  EXPECT_EQ(*bucket_extent("pow2", 1), 1);
  EXPECT_EQ(*bucket_extent("pow2", 1000), 1024);
  EXPECT_EQ(*bucket_extent("pow2", 1024), 1024);
  EXPECT_EQ(*bucket_extent("pow2", 1025), 2048);
  EXPECT_EQ(*bucket_extent("multiple:64", 1), 64);
  EXPECT_EQ(*bucket_extent("multiple:64", 64), 64);
  EXPECT_EQ(*bucket_extent("multiple:64", 65), 128);
}

TEST(BucketRule, HasNoBucketPastItsRange) {
  constexpr std::int64_t kTop = std::int64_t{1} << 62;
  EXPECT_EQ(*bucket_extent("pow2", kTop), kTop);
  EXPECT_FALSE(bucket_extent("pow2", kTop + 1).is_ok());
  EXPECT_FALSE(bucket_extent("multiple:3", kTop).is_ok());  // would end past the top
  EXPECT_FALSE(bucket_extent("exact", 0).is_ok());
  EXPECT_FALSE(bucket_extent("pow2", -8).is_ok());
}

TEST(BucketRule, RefusesUnknownRules) {
  for (const char* text : {"", "pow3", "multiple", "multiple:", "multiple:0", "multiple:-4",
                           "multiple:4x", "multiple:99999999999999999999"}) {
    const auto rule = BucketRule::parse(text);
    ASSERT_FALSE(rule.is_ok()) << text;
    EXPECT_NE(rule.status().message().find("pow2"), std::string::npos);
  }
}

TEST(BucketRule, TextRoundTrips) {
  for (const char* text : {"exact", "pow2", "multiple:48", "range:1-16,17-64,65-", "range:1-1"})
    EXPECT_EQ(BucketRule::parse(text)->text(), text);
}

TEST(BucketRule, RangesNameTheirLargestExtent) {
  const BucketRule open = *BucketRule::parse("range:1-16,17-64,65-");
  for (const auto& [extent, bucket] :
       {std::pair{0, 0}, {1, 16}, {16, 16}, {17, 64}, {64, 64}, {65, 65}, {9999, 65}})
    EXPECT_EQ(open.apply(extent), bucket) << extent;
  EXPECT_EQ(BucketRule::parse("range:1-16")->apply(17), 0);
  for (const char* text :
       {"range:", "range:2-5", "range:1-5,7-9", "range:1-5,6-,7-9", "range:1-", "range:5-1",
        "range:1-5,", "range:1-5,6", "range:1--5", "range:a-b",
        "range:1-2,3-4,5-6,7-8,9-10,11-12,13-14,15-16,17-18,19-20,21-22,23-24,25-26"})
    EXPECT_EQ(BucketRule::parse(text).status().code(), Code::kInvalid) << text;
}

TEST(BucketOf, FollowsTheProblemsOrder) {
  KernelSpec spec;
  spec.bucket = {{"M", "pow2"}, {"K", "multiple:100"}};
  const ProblemShape problem = *parse_shape("M=1000,N=77,K=101");
  EXPECT_EQ(*bucket_of(spec, problem), "M=1024,N=77,K=200");
}

TEST(BucketOf, NamesTheWrongDimension) {
  KernelSpec spec;
  spec.file = "gemm.toml";
  spec.bucket = {{"Q", "pow2"}};
  const auto bucket = bucket_of(spec, *parse_shape("M=1"));
  ASSERT_FALSE(bucket.is_ok());
  EXPECT_NE(bucket.status().message().find("'Q'"), std::string::npos);
}

TEST(BucketRule, BoundsAreWhereTheNameChanges) {
  for (const char* text : {"exact", "pow2", "multiple:48", "range:1-16,17-70,71-"}) {
    const BucketRule rule = *BucketRule::parse(text);
    for (std::int64_t extent = 1; extent < 400; ++extent) {
      const auto [low, high] = rule.bounds(extent);
      EXPECT_EQ(rule.apply(low), rule.apply(extent)) << text << " at " << extent;
      EXPECT_NE(rule.apply(low - 1), rule.apply(extent)) << text << " at " << extent;
      if (high == 0) {
        EXPECT_GT(extent, 70) << text;
        continue;
      }
      EXPECT_EQ(rule.apply(high), rule.apply(extent)) << text << " at " << extent;
      EXPECT_NE(rule.apply(high + 1), rule.apply(extent)) << text << " at " << extent;
    }
  }
  EXPECT_EQ(BucketRule::parse("range:1-16")->bounds(17), (std::pair<std::int64_t, std::int64_t>()));
}

}  // namespace
}  // namespace purlin::cache
