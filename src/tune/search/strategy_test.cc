// SPDX-License-Identifier: Apache-2.0
#include "tune/search/strategy.h"

#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

namespace purlin::tune {
namespace {

Space space_of(const PublishedSpace& published) {
  return build_space(published.parameters, published.constraints, Scope{}).value();
}

Parameter counting(const std::string& name, int count) {
  Parameter parameter;
  parameter.name = name;
  for (std::int64_t value = 1; value <= count; ++value) parameter.values.push_back(value);
  return parameter;
}

// Few hundred configs, with holes, one of a parameter's values, and one parameter of text.
Space small_space() {
  std::vector<Parameter> parameters = {counting("A", 6), counting("B", 6), counting("C", 5),
                                       counting("ONE", 1)};
  Parameter text;
  text.name = "ORDER";
  text.values = {std::string("row"), std::string("column")};
  parameters.push_back(text);
  std::vector<Config> configs;
  for (std::int64_t i = 0; i < 6 * 6 * 5 * 2; ++i) {
    if (i % 5 == 2) continue;
    Config config;
    config.set("A", i % 6 + 1);
    config.set("B", i / 6 % 6 + 1);
    config.set("C", i / 36 % 5 + 1);
    config.set("ONE", std::int64_t{1});
    config.set("ORDER", std::string(i < 180 ? "row" : "column"));
    configs.push_back(config);
  }
  return list_space(parameters, configs).value();
}

// A landscape with one hill per tile size: distance of each value index from a corner.
std::optional<double> time_of(const Space& space, std::size_t index) {
  Assignment values(space.parameters().size());
  space.assignment(index, values);
  double time = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double last = static_cast<double>(space.parameters()[i].values.size() - 1);
    time += std::abs(static_cast<double>(values[i]) - (i % 2 == 0 ? last : 0));
  }
  if (index % 17 == 3) return std::nullopt;  // some fail
  return time;
}

// Asks with `ahead` outstanding at most, tells in order; the order of evaluation.
std::vector<std::size_t> play(Strategy& strategy, const Space& space, std::size_t count,
                              std::size_t ahead) {
  std::vector<std::size_t> order;
  std::deque<std::size_t> open;
  while (order.size() < count) {
    while (open.size() < ahead) {
      const auto index = strategy.ask();
      if (!index) break;
      open.push_back(*index);
    }
    if (open.empty()) break;
    order.push_back(open.front());
    strategy.tell(open.front(), {time_of(space, open.front()), 1});
    open.pop_front();
  }
  return order;
}

class EveryStrategy : public testing::TestWithParam<std::string> {};

TEST_P(EveryStrategy, NeverRepeatsAndEndsAfterTheWholeSpace) {
  const Space space = small_space();
  for (const std::size_t ahead : {1, 5}) {
    auto strategy = make_strategy(GetParam(), {space, 3, 100}).value();
    const std::vector<std::size_t> order = play(*strategy, space, space.size() + 100, ahead);
    EXPECT_EQ(order.size(), space.size());
    EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), space.size());
  }
}

TEST_P(EveryStrategy, IsDeterministicUnderASeed) {
  const Space space = space_of(dedispersion_space());
  for (const std::size_t ahead : {1, 4}) {
    auto first = make_strategy(GetParam(), {space, 9, 100}).value();
    auto second = make_strategy(GetParam(), {space, 9, 100}).value();
    EXPECT_EQ(play(*first, space, 100, ahead), play(*second, space, 100, ahead));
  }
}

TEST_P(EveryStrategy, DoesNotProposeWhatItWasTold) {
  const Space space = space_of(convolution_space());
  auto strategy = make_strategy(GetParam(), {space, 4, 50}).value();
  std::set<std::size_t> told;
  for (std::size_t index = 0; index < space.size(); index += 3) {
    strategy->tell(index, {5.0, 1});
    told.insert(index);
  }
  for (const std::size_t index : play(*strategy, space, 500, 1)) EXPECT_FALSE(told.contains(index));
}

INSTANTIATE_TEST_SUITE_P(ByName, EveryStrategy,
                         testing::Values("exhaustive", "random", "local", "ils", "annealing",
                                         "genetic", "evolution", "swarm", "model", "boosted",
                                         "auto", "transfer"),
                         [](const auto& named) { return named.param; });

TEST(LocalSearch, ClimbsToTheTopWhereRandomDoesNot) {
  const Space space = space_of(gemm_space());
  const auto best_of = [&](const std::string& name) {
    auto strategy = make_strategy(name, {space, 5, 400}).value();
    double best = 1e9;
    for (const std::size_t index : play(*strategy, space, 400, 1))
      best = std::min(best, time_of(space, index).value_or(1e9));
    return best;
  };
  EXPECT_LT(best_of("local") + 2, best_of("random"));
  EXPECT_LT(best_of("auto") + 2, best_of("random"));
}

TEST(Climb, AsksForTheNeighboursOfReportedConfigsInTheExpectedOrder) {
  const Space space = small_space();
  const auto expected = [](std::size_t index) { return static_cast<double>(index * 7919 % 101); };
  const std::unique_ptr<Strategy> climb = make_climb({space, 3}, expected);
  const std::size_t fast = 17, slow = 100;
  std::set<std::size_t> known = {fast, slow};
  climb->tell(slow, {2.0, 1});
  climb->tell(fast, {1.0, 1});
  // None of the neighbours is faster, so the climb from the fastest is followed by that from the
  // other. Then the slower neighbours are climbed from: nothing is drawn at random.
  for (const std::size_t start : {fast, slow}) {
    std::vector<double> order;
    for (const std::size_t neighbour : space.neighbours(start))
      if (!known.contains(neighbour)) order.push_back(expected(neighbour));
    std::sort(order.begin(), order.end());
    ASSERT_GE(order.size(), 8U);
    for (const double next : order) {
      const std::optional<std::size_t> index = climb->ask();
      ASSERT_TRUE(index.has_value());
      EXPECT_EQ(expected(*index), next);
      const std::vector<std::size_t> near = space.neighbours(start);
      EXPECT_NE(std::find(near.begin(), near.end(), *index), near.end());
      known.insert(*index);
      climb->tell(*index, {3.0, 1});
    }
  }
  const std::optional<std::size_t> next = climb->ask();
  ASSERT_TRUE(next.has_value());
  const std::vector<std::size_t> near = space.neighbours(*next);
  EXPECT_TRUE(std::any_of(near.begin(), near.end(),
                          [&](std::size_t index) { return known.contains(index); }));
}

TEST(Climb, WaitsForOutstandingResultsAndGoesOnFromAFasterOne) {
  const Space space = small_space();
  const std::unique_ptr<Strategy> climb =
      make_climb({space, 3}, [](std::size_t index) { return static_cast<double>(index); });
  climb->tell(17, {2.0, 1});
  std::vector<std::size_t> asked;
  while (const std::optional<std::size_t> index = climb->ask()) asked.push_back(*index);
  EXPECT_EQ(asked.size(), space.neighbours(17).size());
  climb->tell(asked.back(), {1.0, 1});
  const std::optional<std::size_t> next = climb->ask();
  ASSERT_TRUE(next.has_value());
  const std::vector<std::size_t> near = space.neighbours(asked.back());
  EXPECT_NE(std::find(near.begin(), near.end(), *next), near.end());
}

double best_of(const Space& space, const std::string& name, std::size_t evaluations,
               std::size_t ahead = 1) {
  auto strategy = make_strategy(name, {space, 5, evaluations}).value();
  double best = 1e9;
  for (const std::size_t index : play(*strategy, space, evaluations, ahead))
    best = std::min(best, time_of(space, index).value_or(1e9));
  return best;
}

// Each on one landscape with failures and one seed, so nothing here is left to chance.
TEST(LearningStrategies, AreAheadOfRandom) {
  const Space space = space_of(gemm_space());
  const double random = best_of(space, "random", 300);
  for (const char* name :
       {"local", "ils", "annealing", "genetic", "evolution", "swarm", "model", "boosted"})
    EXPECT_LT(best_of(space, name, 300), random) << name;
}

TEST(ModelSearch, FindsTheTopEarlyAndAsWellWhenAskedAhead) {
  const Space space = space_of(gemm_space());
  const double top = best_of(space, "ils", 3000);
  EXPECT_LE(best_of(space, "model", 120), top + 1);
  EXPECT_LE(best_of(space, "model", 120, 6), top + 1);
}

TEST(ModelSearch, SearchesSpacesTooLargeToList) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 9; ++i) parameters.push_back(counting("P" + std::to_string(i), 10));
  const Space space = build_space(parameters, {}, Scope{}).value();
  ASSERT_EQ(space.size(), 1'000'000'000u);
  EXPECT_LT(best_of(space, "model", 150) + 10, best_of(space, "random", 150));
}

// Of configs that compile side by side, a budget in seconds allows many, however long each
// compiles.
TEST(ABudgetInSeconds, AllowsWhatPassesAndNotWhatCompilersSpend) {
  const Space space = space_of(gemm_space());
  PriorRun run;
  for (std::size_t index = 0; index < space.size(); index += 7)
    if (const std::optional<double> time_ms = time_of(space, index))
      run.times.emplace_back(index, *time_ms);
  std::sort(run.times.begin(), run.times.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const bool with_priors : {false, true}) {
    StrategyRequest request{space, 3, 0, 30};
    if (with_priors) request.priors = {run};
    const auto alone = make_strategy("auto", request).value();
    const auto beside = make_strategy("auto", request).value();
    for (int i = 0; i < 60; ++i) {
      const std::size_t index = *alone->ask();
      ASSERT_EQ(*beside->ask(), index) << i;
      alone->tell(index, {time_of(space, index), 0.2});
      beside->tell(index, {time_of(space, index), 3, nullptr, 0.2});
    }
  }
}

// One switch splits the space: the wide half is good nearly everywhere, the narrow half is mostly
// slow and has the best configs. No single step leads from the best of the one to the other.
double time_of_halves(const Space& space, std::size_t index) {
  Assignment at(space.parameters().size());
  space.assignment(index, at);
  const double x = at[1], y = at[2], z = at[3];
  const double wide = 10 + 0.2 * (std::abs(x - 2) + std::abs(y - 3) + std::abs(z - 4));
  const double narrow = 7 + 3 * (std::abs(x - 12) + std::abs(y - 11) + std::abs(z - 2));
  return at[0] == 0 ? wide : narrow;
}

TEST(ModelSearch, GetsOutOfTheWrongHalf) {
  std::vector<Parameter> parameters = {{"HALF", {"wide", "narrow"}, std::nullopt}};
  for (const char* name : {"X", "Y", "Z"}) parameters.push_back(counting(name, 14));
  const Space space = build_space(parameters, {}, Scope{}).value();
  const auto found = [&](const ModelOptions& options) {
    int good = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const auto strategy = make_model_search({space, seed, 180}, fit_boosted_trees(), options);
      double best = 1e9;
      for (int i = 0; i < 180; ++i) {
        const std::size_t index = *strategy->ask();
        best = std::min(best, time_of_halves(space, index));
        strategy->tell(index, {time_of_halves(space, index), 1});
      }
      good += best < 10;
    }
    return good;
  };
  ModelOptions unforced;
  unforced.forced = 0;
  const int forced = found({});
  EXPECT_GE(forced, 3);
  EXPECT_GT(forced, found(unforced));
}

// A bowl with a valley between two parameters, as tiles have it.
double time_of_bowl(const Space& space, std::size_t index) {
  Assignment at(space.parameters().size());
  space.assignment(index, at);
  const double x = at[0], y = at[1], z = at[2];
  return 10 + 0.3 * (x - 9) * (x - 9) + 0.3 * (x + y - 14) * (x + y - 14) + 0.2 * std::abs(z - 3);
}

TEST(ModelSearch, LearnsABowlFromFewEvaluations) {
  const Space space =
      build_space({counting("X", 14), counting("Y", 14), counting("Z", 14)}, {}, Scope{}).value();
  const auto excess = [&](std::size_t few) {
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      ModelOptions options;
      options.few_evaluations = few;
      const auto strategy = make_model_search({space, seed, 40}, fit_boosted_trees(), options);
      double best = 1e9;
      for (int i = 0; i < 40; ++i) {
        const std::size_t index = *strategy->ask();
        best = std::min(best, time_of_bowl(space, index));
        strategy->tell(index, {time_of_bowl(space, index), 1});
      }
      sum += best - 10;
    }
    return sum / 6;
  };
  EXPECT_LT(excess(100), 0.1);
  EXPECT_LT(excess(100), excess(0));
}

// With so few evaluations there is no model, and configs like the slow ones are left out.
TEST(ModelSearch, IsNotBehindRandomInEightEvaluations) {
  const Space space = space_of(gemm_space());
  const auto mean_best = [&](const std::string& name) {
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      auto strategy = make_strategy(name, {space, seed, 8}).value();
      double best = 1e3;
      for (const std::size_t index : play(*strategy, space, 8, 1))
        best = std::min(best, time_of(space, index).value_or(1e3));
      sum += best;
    }
    return sum / 60;
  };
  EXPECT_LT(mean_best("auto"), mean_best("random"));
}

TEST(ModelSearch, GoesOnWhenNothingWorks) {
  const Space space = small_space();
  auto strategy = make_strategy("model", {space, 2, 30}).value();
  for (int i = 0; i < 100; ++i) {
    const auto index = strategy->ask();
    ASSERT_TRUE(index);
    strategy->tell(*index, {std::nullopt, 1});
  }
}

// Evaluations that were measured for a second each, and `counting_s` of it for counters, until
// `told` are known.
void learn(Strategy& strategy, const Space& space, std::size_t told, double counting_s) {
  for (std::size_t i = 0; i < told; ++i) {
    const std::optional<std::size_t> index = strategy.ask();
    ASSERT_TRUE(index.has_value());
    Evaluation evaluation;
    evaluation.counters_s = counting_s;
    evaluation.verify_s = 0.25;
    evaluation.measure_s = 0.75;
    evaluation.compile_s = 100;  // in parallel with the rest, in other processes
    evaluation.counters = {{"instructions", static_cast<double>(1 + *index % 7)}};
    Outcome outcome{1 + static_cast<double>(*index % 7), 1 + counting_s, &evaluation};
    strategy.tell(*index, outcome);
  }
  static_cast<void>(space);
}

TEST(CounterSearch, HasCountersReadOfTheFirstAndThenOfWhatIsCloseToTheBest) {
  const Space space = small_space();
  const auto strategy = make_counters({space, 3, 200});
  const std::size_t first = strategy->ask().value();
  EXPECT_TRUE(std::isinf(strategy->count_within(first)));
  learn(*strategy, space, 9, 0.1);
  EXPECT_TRUE(std::isinf(strategy->count_within(strategy->ask().value())));
  learn(*strategy, space, 30, 0.1);
  EXPECT_DOUBLE_EQ(strategy->count_within(strategy->ask().value()), 1.1);
  for (const char* other : {"model", "random", "auto"})
    EXPECT_EQ(make_strategy(other, {space, 3, 200}).value()->count_within(first), 0) << other;
}

TEST(CounterSearch, StopsReadingThemWhereThatTakesMoreThanAQuarter) {
  const Space space = small_space();
  const auto strategy = make_counters({space, 3, 200});
  learn(*strategy, space, 9, 2);
  EXPECT_TRUE(std::isinf(strategy->count_within(strategy->ask().value())))
      << "a model of a counter takes some";
  learn(*strategy, space, 3, 2);
  EXPECT_EQ(strategy->count_within(strategy->ask().value()), 1) << "of a new best only";
  learn(*strategy, space, 80, 0);
  EXPECT_DOUBLE_EQ(strategy->count_within(strategy->ask().value()), 1.1) << "time has passed";
}

TEST(AutoStrategy, IsExhaustiveWhereTheBudgetCoversTheSpace) {
  const Space space = space_of(convolution_space());
  EXPECT_EQ(make_strategy("auto", {space, 1, 5000}).value()->name(), "exhaustive");
  EXPECT_EQ(make_strategy("auto", {space, 1, 500}).value()->name(), "model");
}

TEST(MakeStrategy, SuggestsTheNearestName) {
  const Space space = space_of(convolution_space());
  const auto made = make_strategy("randm", {space, 1, 0});
  ASSERT_FALSE(made.is_ok());
  EXPECT_NE(made.status().message().find("did you mean 'random'"), std::string::npos);
}

}  // namespace
}  // namespace purlin::tune
