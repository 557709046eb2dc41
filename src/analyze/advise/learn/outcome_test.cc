// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/learn/outcome.h"

#include "analyze/advise/testing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin::analyze {
namespace {

Outcome outcome(double predicted, double measured) {
  Outcome out;
  out.rule = "fuse_norm";
  out.predicted = {0.5 * predicted, predicted, std::min(1.0, 1.5 * predicted)};
  out.measured = measured;
  return out;
}

TEST(Outcomes, SurviveTheirDocument) {
  const Outcome one = outcome(0.4, 0.3);
  const Result<Outcome> read = outcome_from_json(to_json(one));
  ASSERT_TRUE(read.is_ok());
  EXPECT_EQ(read->rule, one.rule);
  EXPECT_EQ(read->predicted, one.predicted);
  EXPECT_EQ(read->measured, one.measured);
}

TEST(Outcomes, WhatIsNoneIsRefused) {
  for (const char* member : {"schema", "rule", "predicted", "measured"}) {
    Json line = to_json(outcome(0.4, 0.3));
    line.set(member, Json("\x1b[2J"));
    EXPECT_FALSE(outcome_from_json(line).is_ok()) << member;
  }
  EXPECT_FALSE(outcome_from_json(Json::array()).is_ok());
  EXPECT_FALSE(outcome_from_json(to_json(outcome(-0.1, 0.3))).is_ok());  // no gain was predicted
}

// Four outcomes are too few; with five the greatest distance from the median, then the quantile.
TEST(Outcomes, FiveGiveAnInterval) {
  std::vector<Outcome> outcomes;
  for (const double ratio : {0.8, 0.9, 1.0, 1.1}) outcomes.push_back(outcome(0.5, 0.5 * ratio));
  EXPECT_FALSE(track_records(outcomes).at("fuse_norm").factor.has_value());
  outcomes.push_back(outcome(0.5, 0.25));
  const TrackRecord record = track_records(outcomes).at("fuse_norm");
  EXPECT_EQ(record.outcomes, 5u);
  EXPECT_EQ(record.inside, 5u);
  ASSERT_TRUE(record.factor.has_value());
  EXPECT_NEAR(record.median_ratio, 0.9, 1e-9);
  EXPECT_NEAR(record.factor->low, 0.5, 1e-9);
  EXPECT_NEAR(record.factor->high, 0.9 * 0.9 / 0.5, 1e-9);
  for (int i = 0; i < 20; ++i) outcomes.push_back(outcome(0.5, 0.45));
  EXPECT_NEAR(track_records(outcomes).at("fuse_norm").factor->low, 0.9, 0.12);
}

TEST(Outcomes, ALossCountsAsNearlyNothing) {
  std::vector<Outcome> outcomes(5, outcome(0.5, -0.2));
  EXPECT_NEAR(track_records(outcomes).at("fuse_norm").factor->mid, 0.01, 1e-9);
}

TEST(Outcomes, ReplaceTheModelsInterval) {
  TrackRecords records;
  records["remove_copies"] = {6, 5, 0.5, Interval3{0.4, 0.5, 0.6}};
  const auto advice_with = [&](const AdviceOptions& options) {
    return Program()
        .steps(12,
               [](Program& one) {
                 one.kernel(advised_row("relax(float*, int)", "", "", ""), 100'000);
                 one.copy("d2d", 100'000, 1 << 20);
               })
        .advice(options);
  };
  AdviceOptions learned;
  learned.records = &records;
  const Advice plain_advice = advice_with({}), learned_advice = advice_with(learned);
  const Intervention *plain = find(plain_advice, "remove_copies"),
                     *after = find(learned_advice, "remove_copies");
  ASSERT_TRUE(plain != nullptr && after != nullptr);
  EXPECT_NEAR(after->saved_ns.mid, 0.5 * plain->saved_ns.mid, 1);
  EXPECT_NEAR(after->saved_ns.high, 0.6 * plain->saved_ns.mid, 1);
  ASSERT_TRUE(after->record.has_value());
  EXPECT_EQ(after->record->inside, 5u);
}

}  // namespace
}  // namespace purlin::analyze
