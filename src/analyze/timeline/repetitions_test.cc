// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/sequences.h"
#include "base/random.h"

#include <gtest/gtest.h>

#include <numeric>

namespace purlin::analyze {
namespace {

using Tokens = std::vector<std::uint32_t>;

Tokens times(const Tokens& round, std::size_t count) {
  Tokens out;
  for (std::size_t i = 0; i < count; ++i) out.insert(out.end(), round.begin(), round.end());
  return out;
}

Tokens counting(std::uint32_t first, std::uint32_t count) {
  Tokens out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

TEST(Repetitions, OneKernelOverAndOver) {
  const auto found = find_repetitions(times({5}, 300), {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].begin, 0u);
  EXPECT_EQ(found[0].period, 1u);
  EXPECT_EQ(found[0].rounds, 300u);
}

TEST(Repetitions, TheShortestPeriodOfSeveral) {
  const auto found = find_repetitions(times({1, 2, 3}, 40), {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].period, 3u);
  EXPECT_EQ(found[0].rounds, 40u);
}

// Four layers make a step: the step covers all of it, the layers do not.
TEST(Repetitions, StepsRatherThanTheLayersInThem) {
  Tokens step = times(counting(1, 10), 4);
  const Tokens rest = counting(100, 10);
  step.insert(step.end(), rest.begin(), rest.end());
  const auto found = find_repetitions(times(step, 5), {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].period, 50u);
  EXPECT_EQ(found[0].rounds, 5u);
}

TEST(Repetitions, WhatComesBeforeAndAfterIsLeftOut) {
  Tokens tokens = counting(1000, 77);
  const Tokens middle = times(counting(1, 20), 3), tail = counting(2000, 50);
  tokens.insert(tokens.end(), middle.begin(), middle.end());
  tokens.insert(tokens.end(), tail.begin(), tail.end());
  const auto found = find_repetitions(tokens, {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].begin, 77u);
  EXPECT_EQ(found[0].period, 20u);
  EXPECT_EQ(found[0].rounds, 3u);
}

TEST(Repetitions, RoundsBeginWhereTheDeviceWasIdle) {
  const Tokens tokens = times(counting(1, 10), 8);
  std::vector<std::int64_t> gaps(tokens.size(), 1);
  for (std::size_t i = 4; i < gaps.size(); i += 10) gaps[i] = 1000;
  const auto found = find_repetitions(tokens, gaps);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].begin, 4u);
  EXPECT_EQ(found[0].rounds, 7u);
}

TEST(Repetitions, NothingThatComesAgain) {
  EXPECT_TRUE(find_repetitions(counting(0, 500), {}).empty());
  EXPECT_TRUE(find_repetitions({}, {}).empty());
  EXPECT_TRUE(find_repetitions({1}, {}).empty());
  EXPECT_TRUE(find_repetitions({1, 2, 1, 2}, {}).empty());  // two short rounds are no pattern
}

// Each result is a repetition: equal rounds, disjoint, in range.
TEST(Repetitions, FoundOnesAreTrue) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    Tokens tokens;
    while (tokens.size() < 400) {
      Tokens part;
      for (std::uint64_t i = 1 + random.below(30); i > 0; --i)
        part.push_back(static_cast<std::uint32_t>(random.below(4)));
      part = times(part, 1 + random.below(5));
      tokens.insert(tokens.end(), part.begin(), part.end());
    }
    std::vector<std::int64_t> gaps;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      gaps.push_back(static_cast<std::int64_t>(random.below(100)));
    std::vector<int> used(tokens.size());
    for (const Repetition& found : find_repetitions(tokens, gaps)) {
      ASSERT_GE(found.rounds, 1u);
      ASSERT_LE(found.end(), tokens.size());
      for (std::size_t i = found.begin; i < found.end(); ++i) {
        EXPECT_EQ(used[i]++, 0);
        EXPECT_EQ(tokens[i], tokens[found.begin + (i - found.begin) % found.period]);
      }
    }
  }
}

}  // namespace
}  // namespace purlin::analyze
