// SPDX-License-Identifier: Apache-2.0
// Searches that choose each config by all results before it, and say what to compile meanwhile.
#include "tune/search/strategy.h"
#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace purlin::tune {
namespace {

class PatientSearch : public testing::Test {
 protected:
  static constexpr std::size_t kDraws = 6;  // of a budget of 60

  static Space tiles() {
    PublishedSpace made{"tiles"};
    made.knob("BM", {32, 64, 128, 256})
        .knob("BN", {32, 64, 128, 256})
        .knob("GROUP", {1, 2, 4, 8, 16})
        .knob("STAGES", {2, 3, 4, 5});
    return build_space(made.parameters, made.constraints, Scope{}).value();
  }
  double time_of(std::size_t index) const {
    Assignment at(4);
    space_.assignment(index, at);
    return std::exp(0.3 * std::abs(at[0] - 2.0) + 0.2 * std::abs(at[1] - 3.0) + 0.01 * (4 - at[2]) +
                    0.1 * std::abs(at[3] - 2.0));
  }
  std::unique_ptr<Strategy> search(std::uint64_t seed, bool patient = true) const {
    StrategyRequest request{space_, seed, 60};
    request.patient = patient;
    return make_strategy("auto", request).value();
  }
  void tell(Strategy& strategy, std::size_t index) const {
    strategy.tell(index, {time_of(index), 1});
  }
  void draw_first(Strategy& strategy) const {
    std::vector<std::size_t> drawn;
    for (std::size_t i = 0; i < kDraws; ++i) drawn.push_back(strategy.ask().value());
    for (const std::size_t index : drawn) tell(strategy, index);
  }

  Space space_ = tiles();
};

TEST_F(PatientSearch, WaitsForEachResultOnceItHasDrawn) {
  const auto strategy = search(1);
  std::vector<std::size_t> drawn;
  for (std::size_t i = 0; i < kDraws; ++i) drawn.push_back(strategy->ask().value());
  EXPECT_FALSE(strategy->ask());  // a draw could be made at any time, a choice not
  for (const std::size_t index : drawn) tell(*strategy, index);
  for (int i = 0; i < 20; ++i) {
    const std::size_t index = strategy->ask().value();
    EXPECT_FALSE(strategy->ask());
    tell(*strategy, index);
  }
  const auto hasty = search(1, false);
  draw_first(*hasty);
  EXPECT_TRUE(hasty->ask());
  EXPECT_TRUE(hasty->ask());
}

TEST_F(PatientSearch, AsksForMoreAheadIfToldTo) {
  const auto strategy = search(1);
  strategy->ask_ahead(3);
  draw_first(*strategy);
  for (int i = 0; i < 5; ++i) {
    std::vector<std::size_t> asked;
    while (const auto index = strategy->ask()) asked.push_back(*index);
    ASSERT_EQ(asked.size(), 3U);
    for (const std::size_t index : asked) tell(*strategy, index);
  }
  strategy->ask_ahead(1);
  EXPECT_TRUE(strategy->ask());
  EXPECT_FALSE(strategy->ask());
}

TEST_F(PatientSearch, SaysWhatItMayAskFor) {
  int named = 0, asked = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto strategy = search(seed);
    EXPECT_TRUE(strategy->likely(4).empty());
    draw_first(*strategy);
    std::set<std::size_t> likely;
    for (int i = 0; i < 20; ++i) {
      const std::size_t index = strategy->ask().value();
      named += likely.contains(index);
      ++asked;
      const std::vector<std::size_t> next = strategy->likely(4);
      EXPECT_LE(next.size(), 4U);
      EXPECT_EQ(next, strategy->likely(4));  // nothing is taken
      EXPECT_EQ(std::set(next.begin(), next.end()).size(), next.size());
      EXPECT_EQ(std::count(next.begin(), next.end(), index), 0);
      likely.insert(next.begin(), next.end());
      tell(*strategy, index);
    }
  }
  EXPECT_GE(2 * named, asked);
}

}  // namespace
}  // namespace purlin::tune
