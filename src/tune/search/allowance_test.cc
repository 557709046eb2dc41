// SPDX-License-Identifier: Apache-2.0
#include "tune/search/allowance.h"

#include <gtest/gtest.h>

namespace purlin::tune {
namespace {

Outcome result(double cost_s, std::optional<double> left_s = std::nullopt) {
  Outcome outcome;
  outcome.time_ms = 1;
  outcome.cost_s = cost_s;
  outcome.left_s = left_s;
  return outcome;
}

TEST(Allowance, OfEvaluationsAndOfSecondsTheLesser) {
  Allowance none(0, 0), seconds(0, 30), both(20, 30), evaluations(20, 0);
  for (Allowance* each : {&none, &seconds, &both, &evaluations}) each->tell(result(1));
  EXPECT_DOUBLE_EQ(none.evaluations(), 0);
  EXPECT_DOUBLE_EQ(seconds.evaluations(), 30);
  EXPECT_DOUBLE_EQ(both.evaluations(), 20);
  EXPECT_DOUBLE_EQ(evaluations.evaluations(), 20);
  EXPECT_DOUBLE_EQ(Allowance(0, 30).evaluations(), 0) << "no cost is known";
}

// A start of 12 s and finals of 6 s leave 18 s of 36 s.
TEST(Allowance, TheStartAndTheFinalsAreNoTimeOfTheSearch) {
  Allowance allowance(0, 36);
  allowance.tell(result(1, 17));
  EXPECT_DOUBLE_EQ(allowance.evaluations(), 18);
  // Something else took the session half of what was left.
  allowance.tell(result(1, 8));
  EXPECT_DOUBLE_EQ(allowance.evaluations(), 10);
  // What was measured was allowed.
  allowance.tell(result(1, -2));
  EXPECT_DOUBLE_EQ(allowance.evaluations(), 3);
}

}  // namespace
}  // namespace purlin::tune
