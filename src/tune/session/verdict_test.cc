// SPDX-License-Identifier: Apache-2.0
#include "tune/session/verdict.h"

#include "base/random.h"
#include "tune/session/entry_of.h"
#include "tune/session/finals.h"
#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace purlin::tune {
namespace {

// Samples around a time by config, with normal noise.
class NoisyEvaluator : public Evaluator {
 public:
  NoisyEvaluator(double noise, std::uint64_t seed) : noise_(noise), random_(seed) {}
  const DeviceInfo& device() const override { return info_; }
  bool executes() const override { return !is_recording; }
  bool is_recording = false;
  Result<Evaluation> evaluate(const Config& config, const measure::Policy& policy) override {
    Evaluation made;
    made.config = config;
    const std::int64_t a = std::get<std::int64_t>(*config.find("a"));
    const double now = level(calls, random_);
    for (int i = 0; i < policy.max_samples; ++i)
      made.samples.push_back({now * time(a) * std::max(1 + noise_ * random_.normal(), 0.01), 0});
    made.time_ms = median_ms(made.samples);
    ++calls;
    return made;
  }
  std::function<double(std::int64_t)> time = [](std::int64_t) { return 0.25; };
  // What all samples of one measurement share: the clock, the temperature, a neighbour's load.
  std::function<double(int call, Random&)> level = [](int, Random&) { return 1.0; };
  int calls = 0;

 private:
  DeviceInfo info_;
  double noise_;
  Random random_;
};

class VerdictTest : public testing::Test {
 protected:
  VerdictTest() {
    PublishedSpace made{"made"};
    made.knob("a", {0, 1, 2, 3, 4, 5, 6, 7}).knob("b", {0});
    space_ = build_space(made.parameters, made.constraints, Scope{}).value();
  }

  // A search of all configs, then the finals; config 5 is the default, or the last of fewer.
  Verdicts hold(NoisyEvaluator& evaluator, int rounds = FinalsOptions{}.rounds) {
    evaluations_.clear();
    measure::Policy policy;
    policy.max_samples = 14;
    for (std::size_t i = 0; i < space_.size(); ++i)
      evaluations_.push_back(*evaluator.evaluate(space_.config(i), policy));
    in_finals = true;
    FinalsOptions options;
    options.rounds = rounds;
    return **hold_finals(space_, evaluations_, std::min<std::size_t>(5, space_.size() - 1),
                         evaluator, policy, options, [] { return true; });
  }

  Space space_;
  std::vector<Evaluation> evaluations_;
  bool in_finals = false;
};

// Of equal configs the fastest by chance is named in most sessions, unless chance is allowed for.
TEST_F(VerdictTest, NoiseNeverTakesTheDefaultsPlace) {
  for (const double noise : {0.01, 0.03, 0.1, 0.5})
    for (const int rounds : {0, 1, 2, 5})
      for (std::uint64_t seed = 1; seed <= 25; ++seed) {
        NoisyEvaluator evaluator(noise, seed);
        const Verdicts verdict = hold(evaluator, rounds);
        EXPECT_TRUE(verdict.best().is_default)
            << "noise " << noise << " rounds " << rounds << " seed " << seed;
      }
}

// The samples of one measurement differ less from each other than from those of the next one.
TEST_F(VerdictTest, AMachineThatChangesBetweenMeasurementsNeverTakesTheDefaultsPlace) {
  using Level = std::function<double(int, Random&)>;
  const std::vector<std::pair<const char*, Level>> machines = {
      {"3 %", [](int, Random& r) { return std::exp(0.03 * r.normal()); }},
      {"20 %", [](int, Random& r) { return std::exp(0.2 * r.normal()); }},
      {"two clocks", [](int, Random& r) { return r.below(2) == 0 ? 1.0 : 1.3; }},
      {"a neighbour now and then", [](int, Random& r) { return r.below(10) == 0 ? 3.0 : 1.0; }},
      {"warms up", [](int call, Random&) { return 1 + 0.003 * call; }},
      {"cools down", [](int call, Random&) { return 2 - 0.003 * call; }},
      {"a slow wave", [](int call, Random&) { return 1 + 0.05 * std::sin(call / 7.0); }},
      {"a quick wave", [](int call, Random&) { return 1 + 0.05 * std::sin(call * 1.1); }},
  };
  for (const auto& [name, level] : machines) {
    int lost = 0;
    for (const int rounds : {2, 5})
      for (std::uint64_t seed = 1; seed <= 25; ++seed) {
        NoisyEvaluator evaluator(0.004, seed);
        evaluator.level = level;
        lost += hold(evaluator, rounds).best().is_default ? 0 : 1;
      }
    // Two clocks may look like two configs for all rounds, once in some hundred sessions.
    EXPECT_LE(lost, 2) << name << " of 50";
  }
}

// Of two configs alone, a clock that changes now and then is not seen in two rounds.
TEST_F(VerdictTest, TwoEqualConfigsOnTwoClocksTakeMoreRounds) {
  PublishedSpace two{"two"};
  two.knob("a", {4, 5}).knob("b", {0});
  space_ = build_space(two.parameters, two.constraints, Scope{}).value();
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    NoisyEvaluator evaluator(0.001, seed);
    evaluator.level = [](int, Random& r) { return r.below(2) == 0 ? 1.0 : 1.3; };
    lost += hold(evaluator).best().is_default ? 0 : 1;
  }
  EXPECT_LE(lost, 3);
}

TEST_F(VerdictTest, AFasterConfigWinsThroughNoiseByMoreRounds) {
  int won = 0, most_rounds = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    NoisyEvaluator evaluator(0.1, seed);
    evaluator.time = [](std::int64_t a) { return a == 2 ? 0.22 : 0.25; };  // 12 %
    const Verdicts verdict = hold(evaluator);
    won += evaluations_[verdict.best().evaluation].config.text() == "a=2 b=0" ? 1 : 0;
    most_rounds = std::max(most_rounds, verdict.rounds);
  }
  EXPECT_GE(won, 23);
  EXPECT_GT(most_rounds, FinalsOptions{}.rounds);
  EXPECT_LE(most_rounds, FinalsOptions{}.rounds + FinalsOptions{}.more_rounds);
}

TEST_F(VerdictTest, AClearWinnerNeedsNoFurtherRounds) {
  NoisyEvaluator evaluator(0.01, 1);
  evaluator.time = [](std::int64_t a) { return a == 2 ? 0.1 : 0.25; };
  const Verdicts verdict = hold(evaluator);
  EXPECT_EQ(evaluations_[verdict.best().evaluation].config.text(), "a=2 b=0");
  EXPECT_LE(verdict.rounds, 2);
}

TEST_F(VerdictTest, TimesOfAnotherStateOfTheMachineAreNoticedAndNotStored) {
  NoisyEvaluator evaluator(0.01, 1);
  evaluator.time = [&](std::int64_t a) { return (a == 2 ? 0.1 : 0.25) * (in_finals ? 2.8 : 1); };
  SessionResult result;
  result.verdict = hold(evaluator);
  result.evaluations = evaluations_;
  EXPECT_NEAR(result.verdict->machine_change, 2.8, 0.1);
  KernelSpec spec;
  spec.name = spec.op = "made";
  ProblemShape problem;
  DeviceInfo device;
  device.backend = "fake";
  const Result<cache::Entry> entry = entry_of(result, {spec, problem, device}, "x", true);
  ASSERT_TRUE(entry.is_ok()) << entry.status().message();
  EXPECT_EQ(entry->config.text(), "a=2 b=0");
  EXPECT_EQ(entry->time_ms, 0);
  EXPECT_EQ(entry->default_time_ms, 0);
  EXPECT_TRUE(entry->samples.empty());
}

TEST_F(VerdictTest, ARecordingHasNoRoundsAndItsFastestWins) {
  NoisyEvaluator evaluator(0.001, 1);
  evaluator.is_recording = true;
  evaluator.time = [](std::int64_t a) { return a == 2 ? 0.24 : 0.25; };
  EXPECT_EQ(evaluations_.size(), 0u);
  const Verdicts verdict = hold(evaluator);
  EXPECT_EQ(evaluations_[verdict.best().evaluation].config.text(), "a=2 b=0");
  EXPECT_EQ(verdict.rounds, 0);
}

TEST_F(VerdictTest, ATimeThatIsChanceIsNotStored) {
  NoisyEvaluator evaluator(50, 1);
  SessionResult result;
  result.verdict = hold(evaluator);
  result.evaluations = evaluations_;
  EXPECT_FALSE(result.verdict->best().is_known());
  KernelSpec spec;
  spec.name = spec.op = "made";
  const Result<cache::Entry> entry = entry_of(result, {spec, {}, {}}, "x", true);
  ASSERT_TRUE(entry.is_ok()) << entry.status().message();
  EXPECT_EQ(entry->time_ms, 0);
  EXPECT_TRUE(entry->samples.empty());
}

TEST_F(VerdictTest, ClocksThatDriftAreNoOtherState) {
  NoisyEvaluator evaluator(0.02, 1);
  evaluator.time = [&](std::int64_t a) { return (a == 2 ? 0.1 : 0.25) * (in_finals ? 1.3 : 1); };
  EXPECT_EQ(hold(evaluator).machine_change, 1);
}

// More rounds than an entry keeps samples of are no reason to lose the winner.
TEST_F(VerdictTest, AnEntryKeepsABoundedNumberOfSamples) {
  SessionResult result;
  result.evaluations.emplace_back();
  Finalist finalist;
  finalist.time_ms = finalist.value = 1;
  finalist.samples.assign(50'000, {1, 0});
  Verdicts verdict;
  verdict.finalists = {finalist};
  result.verdict = verdict;
  KernelSpec spec;
  spec.name = spec.op = "made";
  const Result<cache::Entry> entry = entry_of(result, {spec, {}, {}}, "x", true);
  ASSERT_TRUE(entry.is_ok()) << entry.status().message();
  EXPECT_GE(entry->samples.size(), 1000u);
  EXPECT_LE(entry->samples.size(), 20'000u);
}

}  // namespace
}  // namespace purlin::tune
