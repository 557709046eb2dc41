// SPDX-License-Identifier: Apache-2.0
#include "cache/entry/bucket_regret.h"

#include "cache/testing.h"

#include <gtest/gtest.h>

namespace purlin::cache {
namespace {

Entry bucketed() {
  Entry entry = sample_entry(1024);
  entry.bucket_rules = {{"M", *BucketRule::parse("pow2")},
                        {"N", *BucketRule::parse("multiple:64")},
                        {"K", *BucketRule::parse("exact")}};
  entry.shape_constraints = {"M % 4 == 0", "N % 8 == 0"};
  return entry;
}

TEST(BucketRegret, ShapesAreOfTheBucketAndServed) {
  const Entry entry = bucketed();
  const std::vector<ProblemShape> shapes = regret_shapes(entry, 8, 1);
  ASSERT_EQ(shapes.size(), 8u);
  EXPECT_LE(*shapes[0].find("M"), 600);  // one at the small end
  for (const ProblemShape& shape : shapes) {
    EXPECT_FALSE(shape == entry.problem);
    EXPECT_EQ(*bucket_of(entry.bucket_rules, shape), *bucket_of(entry.bucket_rules, entry.problem));
    EXPECT_EQ(*shape.find("M") % 4 + *shape.find("N") % 8, 0) << shape.text();
    EXPECT_EQ(*shape.find("K"), 512);
  }
  EXPECT_EQ(regret_shapes(entry, 8, 1), shapes);
  EXPECT_NE(regret_shapes(entry, 8, 2), shapes);
  Entry exact = entry;
  exact.bucket_rules = {{"M", {}}, {"N", {}}, {"K", {}}};
  EXPECT_TRUE(regret_shapes(exact, 8, 1).empty());
  Entry open = entry;
  open.bucket_rules[0].second = *BucketRule::parse("range:1-64,65-");
  for (const ProblemShape& shape : regret_shapes(open, 8, 1)) {
    EXPECT_GE(*shape.find("M"), 65);
    EXPECT_LE(*shape.find("M"), 4096);
  }
}

TEST(BucketRegret, AdviceNamesTheDimensionAndAFinerRule) {
  Entry entry = bucketed();
  EXPECT_EQ(bucket_advice(entry), "");
  entry.bucket_regret = {{*parse_shape("M=700,N=1024,K=512"), 1.04}};
  EXPECT_EQ(bucket_advice(entry), "");
  entry.bucket_regret.emplace_back(*parse_shape("M=520,N=1000,K=512"), 1.31);
  const std::string advice = bucket_advice(entry);
  EXPECT_NE(advice.find("at M=520,N=1000,K=512"), std::string::npos) << advice;
  EXPECT_NE(advice.find("1.31"), std::string::npos) << advice;
  EXPECT_NE(advice.find("[bucket] M = \"multiple:128\""), std::string::npos) << advice;
  EXPECT_EQ(worst_regret(entry)->second, 1.31);
}

}  // namespace
}  // namespace purlin::cache
