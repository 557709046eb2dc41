// SPDX-License-Identifier: Apache-2.0
#include "tune/search/transfer/rungs.h"

#include <gtest/gtest.h>

namespace purlin::tune {
namespace {

Rungs with_rivals(const std::vector<std::optional<double>>& times) {
  Rungs rungs;
  for (const auto& time : times) rungs.add_rival(time);
  return rungs;
}

TEST(Rungs, NothingIsDecidedWithoutRivals) {
  EXPECT_FALSE(Rungs().passed(1.0));
  EXPECT_FALSE(Rungs().refuted(1.0));
  EXPECT_FALSE(with_rivals({2.0}).passed(1.0));
  EXPECT_FALSE(with_rivals({0.0, 0.5}).refuted(1.0));
}

TEST(Rungs, TwoWinsPassAndThreeLossesRefute) {
  EXPECT_TRUE(with_rivals({0.0, 2.0, 0.5, 3.0}).passed(1.0));
  EXPECT_FALSE(with_rivals({0.0, 2.0, 0.5, 3.0}).refuted(1.0));
  EXPECT_TRUE(with_rivals({0.0, 2.0, 0.5, 0.7}).refuted(1.0));
  EXPECT_FALSE(with_rivals({0.0, 2.0, 0.5, 0.7}).passed(1.0));
}

TEST(Rungs, EveryResultOfFourRivalsDecides) {
  for (int slower = 0; slower <= 4; ++slower) {
    Rungs rungs;
    for (int i = 0; i < 4; ++i) rungs.add_rival(i < slower ? 2.0 : 0.0);
    EXPECT_NE(rungs.passed(1.0), rungs.refuted(1.0)) << slower;
  }
}

TEST(Rungs, WhatFailsLosesToAllAndAFailedRivalIsBeaten) {
  EXPECT_TRUE(with_rivals({1.0, 2.0, 3.0}).refuted(std::nullopt));
  EXPECT_TRUE(with_rivals({std::nullopt, std::nullopt}).passed(1.0));
}

}  // namespace
}  // namespace purlin::tune
