// SPDX-License-Identifier: Apache-2.0
#include "tune/search/exchange.h"

#include "tune/search/strategy.h"
#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>

namespace purlin::tune {
namespace {

Space traded_tiles() {
  PublishedSpace made{"tiles"};
  made.knob("BM", {32, 64, 128, 256})
      .knob("BN", {32, 64, 128, 256})
      .knob("BK", {32, 64, 128})
      .knob("A", {1, 2})
      .knob("B", {1, 2})
      .rule("BM * BN <= 32768");
  return build_space(made.parameters, made.constraints, Scope{}).value();
}

std::vector<std::string> texts(const Space& space, std::string_view config) {
  std::vector<std::string> found;
  for (std::size_t index = 0; index < space.size(); ++index)
    if (space.config(index).text() == config)
      for (const std::size_t other : Exchange(space).of(index))
        found.push_back(space.config(other).text());
  return found;
}

TEST(Exchange, SidesOfATileTradeValuesAndSteps) {
  const Space space = traded_tiles();
  EXPECT_EQ(texts(space, "BM=32 BN=256 BK=32 A=1 B=2"),
            (std::vector<std::string>{"BM=256 BN=32 BK=32 A=1 B=2", "BM=64 BN=128 BK=32 A=1 B=2"}));
  // A trade between neighbours in value is the same as a step each way.
  EXPECT_EQ(texts(space, "BM=128 BN=256 BK=64 A=1 B=1"),
            (std::vector<std::string>{"BM=256 BN=128 BK=64 A=1 B=1"}));
  EXPECT_EQ(texts(space, "BM=128 BN=128 BK=64 A=2 B=1"),
            (std::vector<std::string>{"BM=256 BN=64 BK=64 A=2 B=1", "BM=64 BN=256 BK=64 A=2 B=1"}));
}

// A space as a tiled product has it: either side of the best is slow, as its registers spill or its
// tile is too small. Without exchanges, 8 of these 20 searches of 60 evaluations end elsewhere.
TEST(Exchange, ASearchOfFewEvaluationsLeavesTheWrongTile) {
  PublishedSpace made{"product"};
  made.knob("BM", {32, 64, 128, 256, 512})
      .knob("BN", {32, 64, 128, 256, 512})
      .knob("BK", {16, 32, 64, 128})
      .knob("STAGES", {2, 3, 4})
      .knob("WARPS", {4, 8});
  const Space space = build_space(made.parameters, made.constraints, Scope{}).value();
  const auto value = [&](const Config& config, const char* name) {
    return std::log2(static_cast<double>(std::get<std::int64_t>(*config.find(name))));
  };
  const auto time = [&](std::size_t index) {
    const Config config = space.config(index);
    const double m = value(config, "BM"), n = value(config, "BN");
    const double area = std::abs(m + n - 15), shape = std::abs(m - n + 1) / 2;
    return std::exp(0.8 * area + 0.06 * shape + 0.1 * std::abs(value(config, "BK") - 6) +
                    0.05 * std::abs(value(config, "STAGES") - 1.6) +
                    0.3 * std::abs(value(config, "WARPS") - 3));
  };
  std::size_t best = 0;
  for (std::size_t index = 1; index < space.size(); ++index)
    if (time(index) < time(best)) best = index;
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto strategy = make_strategy("auto", {space, seed, 60}).value();
    std::deque<std::size_t> out;
    bool reached = false;
    for (int asked = 0, told = 0; told < 60; ++told) {
      for (; out.size() < 7 && asked < 60; ++asked) out.push_back(strategy->ask().value());
      reached |= out.front() == best;
      strategy->tell(out.front(), {time(out.front()), 1});
      out.pop_front();
    }
    found += reached;
  }
  EXPECT_GE(found, 18);
}

}  // namespace
}  // namespace purlin::tune
