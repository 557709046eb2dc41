// SPDX-License-Identifier: Apache-2.0
#include "tune/model/boosted_trees.h"
#include "tune/model/counter_features.h"
#include "tune/model/ensemble.h"
#include "tune/space/build.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

namespace purlin::tune {
namespace {

Space tiles() {
  Parameter x{"X", {std::int64_t{8}, std::int64_t{1}, std::int64_t{4}, std::int64_t{2}}, {}};
  Parameter y{"Y", {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}}, {}};
  Parameter text{"T", {std::string("b"), std::string("a")}, {}};
  Parameter fixed{"F", {std::int64_t{3}}, {}};
  return build_space({x, y, text, fixed}, {}, Scope{}).value();
}

TEST(Encoding, RanksNumbersKeepsTextsOrderAndMultiplies) {
  const Space space = tiles();
  const Encoding encoding(space);
  ASSERT_EQ(encoding.features(), 4u);  // X, Y, T, X*Y; F says nothing
  std::vector<std::uint8_t> row(4);
  encoding.encode(*space.find(parse_config("X=8,Y=2,T=b,F=3").value()), row);
  EXPECT_EQ(row, (std::vector<std::uint8_t>{3, 1, 0, 4}));  // products: 1 2 4 8 16 32
  encoding.encode(*space.find(parse_config("X=4,Y=4,T=a,F=3").value()), row);
  EXPECT_EQ(row, (std::vector<std::uint8_t>{2, 2, 1, 4}));
}

struct Table {
  std::vector<std::uint8_t> rows;
  std::vector<float> targets;
  std::vector<std::uint32_t> all;
};

// A step, an interaction and a feature that says nothing.
Table table(std::size_t count) {
  Random random(11);
  Table made;
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = static_cast<std::uint8_t>(random.below(8));
    const auto b = static_cast<std::uint8_t>(random.below(4));
    made.rows.insert(made.rows.end(), {a, b, static_cast<std::uint8_t>(random.below(16))});
    made.targets.push_back((a > 3 ? 2.0F : 0.0F) + (a > 5 && b == 0 ? 3.0F : 0.0F));
  }
  made.all.resize(count);
  std::iota(made.all.begin(), made.all.end(), 0u);
  return made;
}

TEST(BoostedTrees, LearnAnInteraction) {
  const Table known = table(400);
  Random random(1);
  const BoostedTrees trees(known.rows, 3, known.targets, known.all, {}, random);
  const auto at = [&](std::uint8_t a, std::uint8_t b) {
    const std::uint8_t row[] = {a, b, 7};
    return trees.predict(row);
  };
  EXPECT_NEAR(at(1, 0), 0, 0.3);
  EXPECT_NEAR(at(5, 0), 2, 0.3);
  EXPECT_NEAR(at(7, 0), 5, 0.6);
  EXPECT_NEAR(at(7, 2), 2, 0.3);
}

TEST(BoostedTrees, AreDeterministicAndTakeOneRow) {
  const Table known = table(50);
  Random one(5), other(5);
  const BoostedTrees first(known.rows, 3, known.targets, known.all, {}, one);
  const BoostedTrees second(known.rows, 3, known.targets, known.all, {}, other);
  for (std::size_t i = 0; i < 50; ++i)
    EXPECT_EQ(first.predict(known.rows.data() + 3 * i), second.predict(known.rows.data() + 3 * i));
  const std::uint32_t single[] = {4};
  const BoostedTrees constant(known.rows, 3, known.targets, single, {}, one);
  EXPECT_FLOAT_EQ(constant.predict(known.rows.data()), known.targets[4]);
}

double mean(const Ensemble& ensemble, std::size_t config) {
  const std::size_t index[] = {config};
  const Ensemble::Prediction each = ensemble.predict(ensemble.encode(index)).front();
  return std::accumulate(each.begin(), each.end(), 0.0) / Ensemble::kMembers;
}

double mean(const Ensemble& ensemble, const Space& space, const std::string& config) {
  return mean(ensemble, *space.find(parse_config(config).value()));
}

TEST(Ensemble, ExpectsFastConfigsToBeFastAndFailuresNot) {
  const Space space = tiles();
  Ensemble ensemble(space);
  for (std::size_t index = 0; index < space.size(); ++index) {
    const Config config = space.config(index);
    const double x = to_double(*config.find("X")).value(), y = to_double(*config.find("Y")).value();
    const bool fails = x == 8 && y == 4;
    ensemble.add(index, fails ? std::nullopt : std::optional(100 / (x * y)));
  }
  EXPECT_EQ(ensemble.observations(), 24u);
  EXPECT_EQ(ensemble.worked(), 22u);
  Random random(3);
  ensemble.fit(random);
  EXPECT_LT(mean(ensemble, space, "X=4,Y=4,T=a,F=3"), mean(ensemble, space, "X=2,Y=2,T=a,F=3"));
  EXPECT_LT(mean(ensemble, space, "X=8,Y=2,T=a,F=3"), mean(ensemble, space, "X=8,Y=4,T=a,F=3"));
}

TEST(Ensemble, ToleratesOneObservationAndManyAlike) {
  const Space space = tiles();
  Ensemble ensemble(space);
  Random random(4);
  ensemble.add(0, 5.0);
  ensemble.fit(random);
  EXPECT_NEAR(mean(ensemble, space, "X=4,Y=4,T=a,F=3"), std::log(5.0), 1e-5);
  for (int i = 0; i < 3000; ++i) ensemble.add(static_cast<std::size_t>(i) % space.size(), 5.0);
  ensemble.fit(random);
  EXPECT_NEAR(mean(ensemble, space, "X=1,Y=1,T=b,F=3"), std::log(5.0), 1e-3);
}

// Of the pairs of a fast and a slow config that were not observed, the share that the model has
// right, over 40 seeds.
double right_with(const std::function<double(std::size_t)>& time_of,
                  const std::function<std::vector<KnownFeature>(Random&)>& known_by) {
  const Space space = tiles();
  double right = 0, pairs = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    std::vector<std::size_t> order(space.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    random.shuffle(order);
    Ensemble ensemble(space, fit_boosted_trees(), known_by(random));
    for (int i = 0; i < 14; ++i) ensemble.add(order[i], time_of(order[i]));
    ensemble.fit(random);
    for (std::size_t a = 14; a < order.size(); ++a)
      for (std::size_t b = 14; b < order.size(); ++b) {
        if (time_of(order[a]) * 1.5 > time_of(order[b])) continue;
        right += mean(ensemble, order[a]) < mean(ensemble, order[b]);
        ++pairs;
      }
  }
  return right / pairs;
}

TEST(Ensemble, UsesKnownFeaturesOnlyWhereTheyPredict) {
  const Space space = tiles();
  const auto nothing = [](Random&) { return std::vector<KnownFeature>{}; };
  const auto dealt = [&](Random& random) {
    std::vector<KnownFeature> known(24);
    for (KnownFeature& one : known)
      for (std::size_t index = 0; index < space.size(); ++index)
        one.bins.emplace_back(index, static_cast<std::uint8_t>(random.below(64)));
    return known;
  };
  const auto smooth = [&](std::size_t index) {
    return 1 / to_double(*space.config(index).find("X")).value();
  };
  EXPECT_GT(right_with(smooth, dealt), right_with(smooth, nothing) - 0.02);
  // The values of a config say nothing here.
  const auto rough = [](std::size_t index) {
    return std::exp(static_cast<double>((index * 2654435761U) % 1009) / 400);
  };
  const auto turned_round = [&](Random&) {
    std::vector<KnownFeature> known(1);
    for (std::size_t index = 0; index < space.size(); ++index)
      known[0].bins.emplace_back(index, static_cast<std::uint8_t>(63 - 5 * rough(index)));
    return known;
  };
  EXPECT_GT(right_with(rough, turned_round), 0.8);
  EXPECT_LT(right_with(rough, nothing), 0.7);
}

TEST(CounterFeatures, AreMeasuredWhereProfiledAndExpectedElsewhere) {
  CounterFeatures features;
  std::vector<std::uint8_t> rows;
  for (std::uint8_t v = 0; v < 40; ++v) {
    const std::uint8_t row[] = {v};
    rows.push_back(v);
    std::map<std::string, double> counters = {{"inst.sum", std::exp2(v / 4.0)}, {"same.sum", 7}};
    if (v == 3) counters["rare.sum"] = 1;  // not of every profile
    if (v % 5 == 4) counters.clear();      // not profiled
    features.add(row, counters);
  }
  Random random(1);
  const std::vector<std::optional<float>> times(40, 1.0F);
  features.fit(1, times, fit_boosted_trees(), random);
  ASSERT_EQ(features.width(), 1u);  // what does not vary says nothing
  const std::vector<std::uint8_t> expected = features.expected(rows, 1);
  ASSERT_EQ(expected.size(), 40u);
  EXPECT_LT(expected[9], expected[19]);
  EXPECT_LT(expected[19], expected[34]);
  EXPECT_EQ(features.observed()[4], expected[4]);
  for (std::size_t i = 5; i < 40; ++i)
    if (i % 5 != 4) {
      EXPECT_GE(features.observed()[i], features.observed()[i - 5]) << i;
    }
  for (const std::uint8_t byte : expected) EXPECT_LT(byte, 64);
}

// As in a live session: facts of compiled kernels are of all, the hardware's counters of some.
TEST(CounterFeatures, ThoseOfSomeAreLearntBesideThoseOfAll) {
  CounterFeatures features;
  std::vector<std::uint8_t> rows;
  for (std::uint8_t v = 0; v < 40; ++v) {
    const std::uint8_t row[] = {v};
    rows.push_back(v);
    std::map<std::string, double> counters = {{"registers", 16.0 + v % 4}};
    if (v % 3 == 0) counters["dram_read_bytes"] = std::exp2(v / 2.0);
    features.add(row, counters);
  }
  Random random(1);
  const std::vector<std::optional<float>> times(40, 1.0F);
  features.fit(1, times, fit_boosted_trees(), random);
  ASSERT_EQ(features.width(), 2u);
  const std::vector<std::uint8_t> expected = features.expected(rows, 1);
  // The one that varies most comes first.
  EXPECT_LT(expected[2 * 4], expected[2 * 34]);
  EXPECT_EQ(features.observed()[2 * 4], expected[2 * 4]) << "not read of that one";
}

TEST(CounterFeatures, TooFewProfilesAreNone) {
  CounterFeatures features;
  Random random(1);
  std::vector<std::optional<float>> times;
  features.fit(1, times, fit_boosted_trees(), random);
  for (std::uint8_t v = 0; v < 7; ++v) {
    const std::uint8_t row[] = {v};
    features.add(row, {{"inst.sum", v}});
    times.push_back(1.0F);
  }
  features.fit(1, times, fit_boosted_trees(), random);
  EXPECT_EQ(features.width(), 0u);
}

// Bytes bind the first configs and instructions the last; a share of a peak is no amount.
TEST(CounterFeatures, TheFloorIsWhatBindsAtTheBestRateSeen) {
  CounterFeatures features;
  std::vector<std::uint8_t> rows;
  std::vector<std::optional<float>> times;
  for (std::uint8_t v = 0; v < 40; ++v) {
    const std::uint8_t row[] = {v};
    rows.push_back(v);
    const double bytes = 1e6 * std::exp2((40 - v) / 8.0), instructions = 1e4 * std::exp2(v / 8.0);
    features.add(row, {{"dram_read_bytes", bytes},
                       {"instructions", instructions},
                       {"dram_busy_pct", 1.0 + v * v}});
    // At 1e6 bytes or 1e4 instructions a ms; odd ones take twice as long as what binds them.
    const double floor_ms = std::max(bytes / 1e6, instructions / 1e4);
    times.push_back(static_cast<float>(std::log(v % 2 == 0 ? floor_ms : 2 * floor_ms)));
  }
  times[7] = std::nullopt;  // failed
  Random random(1);
  features.fit(1, times, fit_boosted_trees(), random);
  const std::vector<float> floors = features.floors(rows, 1);
  ASSERT_EQ(floors.size(), 40u);
  EXPECT_NEAR(floors[20], std::log(std::exp2(20 / 8.0)), 0.25);
  EXPECT_GT(floors[0], floors[20] + 1);
  EXPECT_GT(floors[39], floors[20] + 1);
  EXPECT_TRUE(CounterFeatures().floors(rows, 1).empty());
}

TEST(Ensemble, LearnsThroughCounters) {
  const Space space = tiles();
  Ensemble ensemble(space);
  for (std::size_t index = 0; index < space.size(); ++index) {
    const Config config = space.config(index);
    const double x = to_double(*config.find("X")).value(), y = to_double(*config.find("Y")).value();
    ensemble.add(index, 100 / (x * y), {{"sectors.sum", 1e6 / (x * y)}});
  }
  Random random(3);
  ensemble.fit(random);
  EXPECT_LT(mean(ensemble, space, "X=4,Y=4,T=a,F=3"), mean(ensemble, space, "X=2,Y=2,T=a,F=3"));
  EXPECT_LT(mean(ensemble, space, "X=8,Y=4,T=a,F=3"), mean(ensemble, space, "X=1,Y=1,T=a,F=3"));
}

}  // namespace
}  // namespace purlin::tune
