// SPDX-License-Identifier: Apache-2.0
#include "tune/space/space.h"

#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace purlin::tune {
namespace {

Space dedispersion() {
  const PublishedSpace published = dedispersion_space();
  return build_space(published.parameters, published.constraints, Scope{}).value();
}

TEST(Space, ConfigsKeepTheSpecsOrderAndAreFoundAgain) {
  const Space space = dedispersion();
  for (std::size_t i = 0; i < space.size(); i += 97) {
    const Config config = space.config(i);
    ASSERT_EQ(config.items().size(), space.parameters().size());
    for (std::size_t p = 0; p < space.parameters().size(); ++p)
      EXPECT_EQ(config.items()[p].first, space.parameters()[p].name);
    EXPECT_EQ(space.find(config), i);
  }
}

TEST(Space, FindRejectsWhatIsNotAConfig) {
  const Space space = dedispersion();
  Config config = space.config(5);
  config.set("block_size_x", std::int64_t{3});
  EXPECT_EQ(space.find(config), std::nullopt);
  EXPECT_EQ(space.find(Config{}), std::nullopt);
  Config invalid = space.config(0);
  invalid.set("tile_size_x", std::int64_t{1});
  invalid.set("tile_stride_x", std::int64_t{1});
  EXPECT_EQ(space.find(invalid), std::nullopt);
}

TEST(Space, NeighboursDifferInExactlyOneParameterAndAreAllThere) {
  const Space space = dedispersion();
  const std::size_t count = space.parameters().size();
  Assignment own(count), other(count);
  for (const std::size_t index : {std::size_t{0}, space.size() / 3, space.size() - 1}) {
    space.assignment(index, own);
    std::set<std::size_t> expected;
    for (std::size_t i = 0; i < space.size(); ++i) {
      space.assignment(i, other);
      int differing = 0;
      for (std::size_t p = 0; p < count; ++p) differing += own[p] != other[p] ? 1 : 0;
      if (differing == 1) expected.insert(i);
    }
    const std::vector<std::size_t> found = space.neighbours(index);
    EXPECT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::set<std::size_t>(found.begin(), found.end()), expected);
  }
}

TEST(Space, AdjacentConfigsAreTheNearestNeighbourOnEitherSide) {
  const Space space = dedispersion();
  const std::size_t count = space.parameters().size();
  Assignment own(count), other(count);
  for (const std::size_t index : {std::size_t{0}, space.size() / 3, space.size() - 1}) {
    space.assignment(index, own);
    std::vector<std::size_t> expected;
    for (std::size_t p = 0; p < count; ++p) {
      std::optional<std::size_t> before, after;
      for (std::size_t v = 0; v < space.parameters()[p].values.size(); ++v) {
        other = own;
        other[p] = static_cast<std::uint16_t>(v);
        const std::optional<std::size_t> found = space.find(other);
        if (!found || v == own[p]) continue;
        if (v < own[p]) before = found;
        if (v > own[p] && !after) after = found;
      }
      if (before) expected.push_back(*before);
      if (after) expected.push_back(*after);
    }
    EXPECT_EQ(space.adjacent(index), expected);
    EXPECT_FALSE(expected.empty());
  }
}

TEST(Space, SamplesWithoutRepeatsAndIsTheSameUnderASeed) {
  const Space space = dedispersion();
  Random first(11), second(11);
  const std::vector<std::size_t> drawn = space.sample(500, first);
  EXPECT_EQ(drawn, space.sample(500, second));
  EXPECT_EQ(std::set<std::size_t>(drawn.begin(), drawn.end()).size(), 500u);
  EXPECT_EQ(space.sample(space.size() + 10, first).size(), space.size());
}

TEST(Shuffle, IsAUniformPermutation) {
  std::vector<std::vector<int>> at(5, std::vector<int>(5));
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    Shuffle shuffle(5, seed);
    std::set<std::size_t> seen;
    for (std::size_t place = 0; place < 5; ++place) {
      const std::size_t item = shuffle.next().value();
      seen.insert(item);
      ++at[place][item];
    }
    ASSERT_EQ(seen.size(), 5u);
    ASSERT_EQ(shuffle.next(), std::nullopt);
  }
  for (const auto& place : at)
    for (const int times : place) EXPECT_NEAR(times, 1000, 130);  // 4.6 sigma
}

}  // namespace
}  // namespace purlin::tune
