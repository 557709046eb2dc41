// SPDX-License-Identifier: Apache-2.0
#include "guard/bisect/search.h"

#include "base/random.h"

#include <gtest/gtest.h>

namespace purlin::guard {
namespace {

struct Outcome {
  BisectSearch search;
  int tries = 0;
};

// Searches a history in which `culprit` is the first bad commit and `broken` cannot be tried.
Outcome run_search(std::size_t commits, std::size_t culprit, const std::vector<bool>& broken) {
  Outcome outcome{BisectSearch(commits), 0};
  while (const std::optional<std::size_t> commit = outcome.search.next()) {
    ++outcome.tries;
    outcome.search.tell(*commit, broken[*commit]      ? Probe::kUntriable
                                 : *commit >= culprit ? Probe::kBad
                                                      : Probe::kGood);
  }
  return outcome;
}

TEST(BisectSearch, NamesEveryPossibleCulpritInLogarithmicTries) {
  const std::vector<bool> broken(64, false);
  for (std::size_t culprit = 1; culprit < 64; ++culprit) {
    const Outcome outcome = run_search(64, culprit, broken);
    ASSERT_TRUE(outcome.search.found());
    EXPECT_EQ(outcome.search.bad(), culprit);
    EXPECT_LE(outcome.tries, 6);
  }
}

TEST(BisectSearch, TwoCommitsNeedNoTry) {
  const BisectSearch search(2);
  EXPECT_TRUE(search.done());
  EXPECT_TRUE(search.found());
  EXPECT_EQ(search.bad(), 1u);
}

// For any set of broken commits, the final range holds the culprit and only untriable commits.
TEST(BisectSearch, UntriableCommitsAreWalkedAroundAndNeverLoseTheCulprit) {
  Random random(11);
  for (int trial = 0; trial < 500; ++trial) {
    const std::size_t commits = 3 + random.below(100);
    const std::size_t culprit = 1 + random.below(commits - 1);
    std::vector<bool> broken(commits, false);
    const double share = random.uniform();
    for (std::size_t i = 1; i + 1 < commits; ++i) broken[i] = random.uniform() < share;
    const Outcome outcome = run_search(commits, culprit, broken);
    EXPECT_LT(outcome.search.good(), culprit);
    EXPECT_GE(outcome.search.bad(), culprit);
    for (std::size_t i = outcome.search.good() + 1; i < outcome.search.bad(); ++i)
      EXPECT_TRUE(broken[i]);
    EXPECT_LE(static_cast<std::size_t>(outcome.tries), commits);
  }
}

TEST(BisectSearch, ARunOfBrokenBuildsCostsFewTries) {
  std::vector<bool> broken(1000, false);
  for (std::size_t i = 400; i < 600; ++i) broken[i] = true;
  const Outcome outcome = run_search(1000, 123, broken);
  EXPECT_EQ(outcome.search.bad(), 123u);
  EXPECT_LE(outcome.tries, 40);
}

TEST(BisectSearch, WhatContradictsIsIgnoredAndTellingTwiceChangesNothing) {
  BisectSearch search(10);
  search.tell(5, Probe::kBad);
  search.tell(7, Probe::kGood);
  search.tell(5, Probe::kGood);
  search.tell(9, Probe::kGood);
  search.tell(0, Probe::kBad);
  EXPECT_EQ(search.good(), 0u);
  EXPECT_EQ(search.bad(), 5u);
  EXPECT_EQ(search.tries_left(), 3);
}

}  // namespace
}  // namespace purlin::guard
