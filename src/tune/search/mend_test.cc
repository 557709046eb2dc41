// SPDX-License-Identifier: Apache-2.0
#include "tune/search/mend.h"

#include "base/random.h"
#include "tune/search/strategy.h"
#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::tune {
namespace {

Space mended_space(const PublishedSpace& made) {
  return build_space(made.parameters, made.constraints, Scope{}).value();
}

class MendTest : public testing::Test {
 protected:
  static Space tiles() {
    PublishedSpace made{"tiles"};
    made.knob("TILE", {64, 128, 256}).knob("WARPS", {2, 4, 8}).knob("STAGES", {2, 3});
    return mended_space(made);
  }
  std::size_t at(std::string_view config) const {
    for (std::size_t index = 0; index < space_.size(); ++index)
      if (space_.config(index).text() == config) return index;
    ADD_FAILURE() << config;
    return 0;
  }
  std::vector<std::string> mends(std::string_view best) const {
    std::vector<std::string> found;
    for (const Mend::Way& way : mend_.of(at(best)))
      found.push_back(space_.config(way.index).text());
    return found;
  }
  void take(std::string_view best, std::string_view config) {
    for (const Mend::Way& way : mend_.of(at(best)))
      if (way.index == at(config)) return mend_.take(way);
    ADD_FAILURE() << config;
  }

  Space space_ = tiles();
  Mend mend_{space_};
};

TEST_F(MendTest, AFailedStepOfTheBestIsMendedByASecondStep) {
  mend_.add(at("TILE=128 WARPS=4 STAGES=2"), true);
  mend_.add(at("TILE=256 WARPS=2 STAGES=3"), false);  // two steps away
  EXPECT_TRUE(mends("TILE=128 WARPS=4 STAGES=2").empty());
  mend_.add(at("TILE=256 WARPS=4 STAGES=2"), false);
  EXPECT_EQ(mends("TILE=128 WARPS=4 STAGES=2"),
            (std::vector<std::string>{"TILE=256 WARPS=2 STAGES=2", "TILE=256 WARPS=8 STAGES=2",
                                      "TILE=256 WARPS=4 STAGES=3"}));
}

TEST_F(MendTest, OnceAndAgainWhileTheMendFails) {
  mend_.add(at("TILE=256 WARPS=4 STAGES=2"), false);
  take("TILE=128 WARPS=4 STAGES=2", "TILE=256 WARPS=2 STAGES=2");
  EXPECT_TRUE(mends("TILE=128 WARPS=4 STAGES=2").empty());  // its result is awaited
  mend_.add(at("TILE=256 WARPS=2 STAGES=2"), false);
  EXPECT_FALSE(mends("TILE=128 WARPS=4 STAGES=2").empty());
  take("TILE=128 WARPS=4 STAGES=2", "TILE=256 WARPS=8 STAGES=2");
  mend_.add(at("TILE=256 WARPS=8 STAGES=2"), true);
  EXPECT_TRUE(mends("TILE=128 WARPS=4 STAGES=2").empty());
}

// As in a product on tensor cores: smaller tiles are slower, and as fast with either number of
// warps. The largest tile fails with the fewer.
class MendingSearch : public testing::Test {
 protected:
  static Space product() {
    PublishedSpace made{"product"};
    made.knob("BM", {32, 64, 128, 256})
        .knob("BN", {32, 64, 128, 256})
        .knob("GROUP", {1, 2, 4, 8, 16})
        .knob("WARPS", {4, 8})
        .knob("STAGES", {2, 3, 4, 5});
    return mended_space(made);
  }
  std::size_t index_of(const std::string& config) const {
    for (std::size_t index = 0; index < space_.size(); ++index)
      if (space_.config(index).text() == config) return index;
    ADD_FAILURE() << config;
    return space_.size();
  }
  double log2(std::size_t index, const char* name) const {
    return std::log2(static_cast<double>(std::get<std::int64_t>(*space_.config(index).find(name))));
  }
  std::optional<double> time(std::size_t index) const {
    const double area = log2(index, "BM") + log2(index, "BN");
    if (area - log2(index, "WARPS") > 12.5) return std::nullopt;  // registers
    return std::exp(0.4 * (16 - area) + 0.01 * (4 - log2(index, "GROUP")) +
                    0.1 * std::abs(log2(index, "STAGES") - 2));
  }
  // Of ten searches, those that mend the failed step of `near`, a config that is not the best.
  int mended(std::size_t best, std::size_t near, std::size_t failed) const {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const auto strategy = make_strategy("auto", {space_, seed, 60, 0, {}, 60}).value();
      Random random(seed);
      for (const std::size_t index : space_.sample(16, random))
        if (time(index).value_or(9) > *time(near)) strategy->tell(index, {time(index), 1});
      for (const std::size_t index : {near, best, failed}) strategy->tell(index, {time(index), 1});
      Mend mend(space_);
      mend.add(failed, false);
      const std::vector<Mend::Way> ways = mend.of(near);
      bool asked = false;
      for (int i = 0; i < 3; ++i) {
        const std::size_t index = strategy->ask().value();
        asked |= std::any_of(ways.begin(), ways.end(),
                             [&](const Mend::Way& way) { return way.index == index; });
      }
      found += asked;
    }
    return found;
  }

  Space space_ = product();
};

TEST_F(MendingSearch, OfFewEvaluationsMendsWhatFailedNextToTheBest) {
  const std::size_t best = index_of("BM=128 BN=128 GROUP=16 WARPS=4 STAGES=4");
  EXPECT_GE(mended(best, best, index_of("BM=128 BN=256 GROUP=16 WARPS=4 STAGES=4")), 9);
}

// GROUP matters little, and chance decides with which value a tile fails.
TEST_F(MendingSearch, MendsWhatFailedNextToAConfigThatIsAsGood) {
  EXPECT_GE(mended(index_of("BM=128 BN=128 GROUP=16 WARPS=4 STAGES=4"),
                   index_of("BM=128 BN=128 GROUP=4 WARPS=4 STAGES=4"),
                   index_of("BM=128 BN=256 GROUP=4 WARPS=4 STAGES=4")),
            9);
}

}  // namespace
}  // namespace purlin::tune
