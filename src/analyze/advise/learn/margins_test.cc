// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/learn/margins.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

TEST(Margins, WidenBothEndsByTheKind) {
  Interval3 share = {0.3, 0.5, 0.7}, ns = {300, 500, 700};
  widen({1, 0.1, 0.2}, 1000, share, ns);
  EXPECT_NEAR(share.low, 0.2, 1e-9);
  EXPECT_NEAR(share.high, 0.9, 1e-9);
  EXPECT_NEAR(ns.low, 200, 1e-9);
  EXPECT_NEAR(ns.high, 900, 1e-9);
  EXPECT_EQ(share.mid, 0.5);
}

TEST(Margins, KeepWhatIsCertain) {
  Interval3 share = {0.05, 0.5, 0.95}, ns = {50, 500, 950};
  widen({1, 0.1, 0.2}, 1000, share, ns);
  EXPECT_EQ(share.low, 0);  // it cannot lose
  EXPECT_EQ(share.high, 1);
  EXPECT_EQ(ns.high, 1000);
  Interval3 losing = {-0.1, 0.2, 0.3}, losing_ns = {-100, 200, 300};
  widen({1, 0.1, 0}, 1000, losing, losing_ns);
  EXPECT_EQ(losing.low, -0.1);  // what it may lose is the model's
}

// A middle that the measured pairs confirm carries the low end with it.
TEST(Margins, KeepAPartOfTheDistanceToTheLowEnd) {
  Interval3 share = {0.1, 0.5, 0.9}, ns = {100, 500, 900};
  widen({0.4, 0.02, 0}, 1000, share, ns);
  EXPECT_NEAR(share.low, 0.32, 1e-9);
  EXPECT_NEAR(ns.low, 320, 1e-9);
  Interval3 doubtful = {0, 0.5, 0.9}, doubtful_ns = {0, 500, 900};
  widen({0.4, 0.02, 0}, 1000, doubtful, doubtful_ns);
  EXPECT_EQ(doubtful.low, 0);  // it may not be possible
  Interval3 losing = {-0.1, 0.2, 0.3}, losing_ns = {-100, 200, 300};
  widen({0.4, 0.02, 0}, 1000, losing, losing_ns);
  EXPECT_EQ(losing.low, -0.1);
}

TEST(Margins, EveryRuleHasOne) {
  EXPECT_GT(margin_of("cuda_graphs").above, margin_of("tensor_cores").above);
  EXPECT_GT(margin_of("a rule to come").below, 0);
}

}  // namespace
}  // namespace purlin::analyze
