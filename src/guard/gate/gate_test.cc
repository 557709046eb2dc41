// SPDX-License-Identifier: Apache-2.0
#include "guard/gate/gate.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

namespace purlin::guard {
namespace {

// A pair of one kernel whose launches vary by `deviation` and whose current arm is `shift` slower.
Pair noisy_pair(Random& random, double time_ns, double deviation, double shift) {
  Pair pair;
  pair.baseline.time_ns = time_ns * std::exp(deviation * random.normal());
  pair.current.time_ns = time_ns * (1 + shift) * std::exp(deviation * random.normal());
  return pair;
}

void run(SuiteGate& gate, const std::function<Pair(std::size_t)>& measure) {
  for (int round = 0; round < 1000 && !gate.done(); ++round)
    for (const std::size_t item : gate.wanted()) gate.add(item, measure(item));
}

// As in a suite of many items, with one item.
Design two_stages() {
  Design design;
  design.one_stage_if_small = false;
  return design;
}

ItemResult judge(double deviation, double shift, std::uint64_t seed, double time_ns = 1e6,
                 Design design = two_stages(), Thresholds thresholds = {}) {
  Random random(seed);
  SuiteGate gate({thresholds}, design);
  run(gate, [&](std::size_t) { return noisy_pair(random, time_ns, deviation, shift); });
  return gate.result(0);
}

TEST(SuiteGate, PassesAlikeArmsWithTheFirstScreen) {
  const ItemResult result = judge(0.005, 0, 1);
  EXPECT_EQ(result.verdict, Verdict::kPass);
  EXPECT_EQ(result.pairs, 8);
}

TEST(SuiteGate, ConfirmsASlowdownWithFreshPairs) {
  const ItemResult result = judge(0.005, 0.08, 1);
  EXPECT_EQ(result.verdict, Verdict::kRegression);
  EXPECT_EQ(result.pairs, 8 + 10);
  EXPECT_EQ(result.effect.pairs, 10);  // the screening pairs do not count
  EXPECT_NEAR(result.effect.ratio, 1.08, 0.01);
  EXPECT_LT(result.effect.low, 1.08);
  EXPECT_GT(result.effect.high, 1.08);
  EXPECT_LE(result.effect.p_slower, 0.002);
}

TEST(SuiteGate, ScreeningPairsAreNotUsedAgain) {
  int launched = 0;
  SuiteGate gate({Thresholds{}}, two_stages());
  run(gate, [&](std::size_t) {
    // Slow while it screens, equal afterwards: a false alarm by chance.
    return ++launched <= 8 ? Pair{{1e6, 0, 0}, {1.2e6, 0, 0}} : Pair{{1e6, 0, 0}, {1e6, 0, 0}};
  });
  EXPECT_EQ(gate.result(0).verdict, Verdict::kPass);
  EXPECT_EQ(launched, 8 + 10);
}

TEST(SuiteGate, NamesAnImprovement) {
  EXPECT_EQ(judge(0.005, -0.1, 1).verdict, Verdict::kImprovement);
}

TEST(SuiteGate, SlowdownBelowTheFloorNeverBlocks) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(judge(0.001, 0.012, seed).verdict, Verdict::kPass) << seed;
}

TEST(SuiteGate, AbsoluteFloorSparesTinyKernelsWhereAskedFor) {
  // 3 us: 200 ns are 6.7 %, so 5 % cannot block; 15 % does.
  Thresholds thresholds;
  thresholds.absolute_floor_ns = 200;
  const ItemResult small = judge(0.002, 0.05, 1, 3000, two_stages(), thresholds);
  EXPECT_EQ(small.verdict, Verdict::kPass);
  EXPECT_NEAR(small.floor, 200.0 / 3000, 0.002);
  EXPECT_GT(small.detectable, small.floor);
  EXPECT_EQ(judge(0.002, 0.15, 1, 3000, two_stages(), thresholds).verdict, Verdict::kRegression);
}

TEST(SuiteGate, TinyKernelsAreGuardedDownToTwoStepsOfTheTimer) {
  // The 3.5 us kernel of an H200, whose timer steps by 32 ns.
  const auto verdict = [](double shift) {
    Random random(3);
    SuiteGate gate({Thresholds{}}, Design{});
    run(gate, [&](std::size_t) {
      Pair pair = noisy_pair(random, 3500, 0.008, shift);
      for (ArmReading* reading : {&pair.baseline, &pair.current}) {
        reading->time_ns = 32 * std::round(reading->time_ns / 32);
        reading->resolution_ns = 32;
      }
      return pair;
    });
    EXPECT_DOUBLE_EQ(gate.result(0).floor, 0.02);
    return gate.result(0).verdict;
  };
  EXPECT_EQ(verdict(0.05), Verdict::kRegression);
  EXPECT_EQ(verdict(0), Verdict::kPass);
}

TEST(SuiteGate, TheFloorIsTheLargestOfFourRules) {
  Thresholds thresholds;
  EXPECT_DOUBLE_EQ(floor_of(thresholds, 1e6, 0, 0), 0.02);
  EXPECT_DOUBLE_EQ(floor_of(thresholds, 1000, 32, 0), 0.064);  // two steps
  EXPECT_DOUBLE_EQ(floor_of(thresholds, 500, 1, 1000), 0.03);  // 30 cycles
  thresholds.absolute_floor_ns = 100;
  EXPECT_DOUBLE_EQ(floor_of(thresholds, 1000, 32, 2000), 0.1);  // as requested
}

TEST(SuiteGate, AProcessWithoutRepeatsDoesNotMakeTheTimerLookCoarse) {
  SuiteGate gate({Thresholds{}}, Design{});
  int taken = 0;
  run(gate, [&](std::size_t) {
    // Most see the 32 ns step. One saw only two distant values, one saw no repeated value.
    const double step = ++taken == 3 ? 5000 : taken == 4 ? 0 : 32;
    return Pair{{20000, 0, step}, {20000, 0, step}};
  });
  EXPECT_DOUBLE_EQ(gate.result(0).floor, 0.02);
}

TEST(SuiteGate, ASmallSuiteKeepsItsScreeningPairs) {
  Random random(8);
  SuiteGate gate({Thresholds{}, Thresholds{}}, Design{});
  run(gate, [&](std::size_t item) { return noisy_pair(random, 1e6, 0.004, item == 0 ? 0.1 : 0); });
  EXPECT_EQ(gate.result(0).verdict, Verdict::kRegression);
  EXPECT_EQ(gate.result(0).pairs, 10);
  EXPECT_EQ(gate.result(0).effect.pairs, 10);
  EXPECT_EQ(gate.result(1).pairs, 8);
  // Three items: their shares of the level are too small for ten pairs, so there are two stages.
  SuiteGate three(std::vector<Thresholds>(3), Design{});
  run(three, [&](std::size_t item) { return noisy_pair(random, 1e6, 0.004, item == 0 ? 0.1 : 0); });
  EXPECT_EQ(three.result(0).pairs, 8 + 10);
}

TEST(SuiteGate, ShortRecordingsAreUsedInOneStage) {
  const auto verdict = [](int available, std::size_t items) {
    Random random(8);
    Design design;
    design.available = available;
    SuiteGate gate(std::vector<Thresholds>(items), design);
    for (int pair = 0; pair < 15; ++pair)
      for (const std::size_t item : gate.wanted())
        gate.add(item, noisy_pair(random, 1e6, 0.004, item < 3 ? 0.05 : 0));
    gate.finish();
    return gate.result(0).verdict;
  };
  // Fifteen pairs: 8 + 7 fresh ones cannot reach 0.01 / 3, all fifteen reach 0.01 / 12.
  EXPECT_EQ(verdict(0, 12), Verdict::kInconclusive);
  EXPECT_EQ(verdict(15, 12), Verdict::kRegression);
  EXPECT_EQ(verdict(15, 600), Verdict::kInconclusive);  // 0.01 / 600 < 2^-15
}

// The level in a small suite, which reuses data: by simulation at a coarse alpha.
TEST(SuiteGate, OneStageHoldsItsLevel) {
  Design design;
  design.suite_alpha = 0.05;
  Thresholds thresholds;
  thresholds.floor = 0;  // only the test prevents a false alarm
  thresholds.detectable = 0.01;
  int red = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    Random random(static_cast<std::uint64_t>(trial) + 77);
    SuiteGate gate({thresholds}, design);
    run(gate, [&](std::size_t) { return noisy_pair(random, 1e6, 0.02, 0); });
    red += gate.result(0).verdict == Verdict::kRegression;
  }
  EXPECT_LE(red, kTrials * 0.05 + 3 * std::sqrt(kTrials * 0.05 * 0.95));
}

TEST(SuiteGate, CoarseTimersRaiseTheFloor) {
  SuiteGate gate({Thresholds{}}, Design{});
  run(gate, [](std::size_t) {
    return Pair{{20000, 0, 1000}, {21000, 0, 1000}};  // one step of a 1 us timer
  });
  EXPECT_EQ(gate.result(0).verdict, Verdict::kPass);
  EXPECT_DOUBLE_EQ(gate.result(0).floor, 0.1);
}

TEST(SuiteGate, HopelessNoiseIsInconclusiveAtTheCap) {
  const ItemResult result = judge(0.4, 0, 3);
  EXPECT_EQ(result.verdict, Verdict::kInconclusive);
  EXPECT_EQ(result.pairs, 32);
  EXPECT_NE(result.reason.find("too noisy"), std::string::npos) << result.reason;
}

TEST(SuiteGate, ClocksNotCodeWhenCyclesStayed) {
  Random random(5);
  SuiteGate gate({Thresholds{}, Thresholds{}}, Design{});
  run(gate, [&](std::size_t item) {
    Pair pair = noisy_pair(random, 1e6, 0.003, 0.1);
    pair.baseline.cycles = 1.98e6;
    pair.current.cycles = item == 0 ? 1.98e6 * (1 + 0.002 * random.normal()) : 1.98e6 * 1.1;
    return pair;
  });
  EXPECT_EQ(gate.result(0).verdict, Verdict::kInconclusive);
  EXPECT_EQ(gate.result(0).cause, "clocks");
  EXPECT_EQ(gate.result(1).verdict, Verdict::kRegression);
  EXPECT_EQ(gate.result(1).cause, "");
}

TEST(SuiteGate, CyclesTooNoisyToSayDoNotExcuse) {
  Random random(6);
  SuiteGate gate({Thresholds{}}, Design{});
  run(gate, [&](std::size_t) {
    Pair pair = noisy_pair(random, 1e6, 0.003, 0.05);
    pair.baseline.cycles = 1.98e6 * std::exp(0.15 * random.normal());
    pair.current.cycles = 1.98e6 * std::exp(0.15 * random.normal());
    return pair;
  });
  EXPECT_EQ(gate.result(0).verdict, Verdict::kRegression);
}

TEST(SuiteGate, AnUnrecordedClockInOnePairMeansNoCycles) {
  EXPECT_EQ(cycle_effect_of({{{1, 5, 0}, {1, 5, 0}}, {{1, 5, 0}, {1, 0, 0}}}, 0.025).pairs, 0);
}

TEST(SuiteGate, GivingUpAnItemLetsTheOthersGoOn) {
  Random random(9);
  SuiteGate gate({Thresholds{}, Thresholds{}}, Design{});
  gate.give_up(0, Verdict::kInvalid, "does not compile");
  run(gate, [&](std::size_t item) {
    EXPECT_EQ(item, 1u);
    return noisy_pair(random, 1e6, 0.004, 0.1);
  });
  EXPECT_EQ(gate.result(0).verdict, Verdict::kInvalid);
  EXPECT_EQ(gate.result(0).reason, "does not compile");
  EXPECT_EQ(gate.result(1).verdict, Verdict::kRegression);
}

TEST(SuiteGate, FinishNeverPassesOnTooFewPairs) {
  for (int pairs : {0, 1, 5, 7}) {
    SuiteGate gate({Thresholds{}}, Design{});
    for (int i = 0; i < pairs; ++i) gate.add(0, {{1000000, 0, 0}, {1000000, 0, 0}});
    gate.finish();
    EXPECT_EQ(gate.result(0).verdict, Verdict::kInconclusive) << pairs;
    EXPECT_TRUE(gate.done());
  }
}

TEST(SuiteGate, FinishWhileConfirmingIsInconclusiveUnlessCertain) {
  for (int fresh : {0, 3, 9}) {
    SuiteGate gate({Thresholds{}}, two_stages());
    for (int i = 0; i < 8 + fresh; ++i) gate.add(0, {{1e6, 0, 0}, {1.2e6, 0, 0}});
    gate.finish();
    // Nine one-sided pairs have p = 2^-9 = 0.00195: enough for the level of a single flagged item.
    EXPECT_EQ(gate.result(0).verdict, fresh == 9 ? Verdict::kRegression : Verdict::kInconclusive);
  }
}

TEST(ConfirmingLevels, AreSplitAndNeverWasted) {
  const Design design;
  const auto total = [](const std::vector<double>& levels) {
    return std::accumulate(levels.begin(), levels.end(), 0.0);
  };
  EXPECT_NEAR(confirming_levels(design, 1)[0], 0.002, 1e-12);
  for (int flagged : {1, 2, 3, 10, 25, 1000}) {
    const std::vector<double> levels = confirming_levels(design, flagged);
    EXPECT_NEAR(total(levels), 0.01 / flagged, 1e-12) << flagged;
    for (std::size_t i = 0; i < levels.size(); ++i)
      EXPECT_TRUE(levels[i] == 0 || levels[i] >= std::ldexp(1.0, -design.confirm_looks[i]));
  }
  EXPECT_EQ(confirming_levels(design, 3)[0], 0);  // 0.002 / 3 < 2^-10: moves on
}

// Error rates under drift, clock states and heavy tails: a small version of the benchmark.
TEST(SuiteGate, SuitesOfAlikeArmsStayGreenAndSlowdownsAreFound) {
  int false_alarms = 0, found = 0;
  constexpr int kSuites = 150, kItems = 40;
  for (int suite = 0; suite < kSuites; ++suite) {
    Random random(static_cast<std::uint64_t>(suite) + 1);
    std::vector<Thresholds> thresholds(kItems);
    SuiteGate gate(thresholds, Design{});
    double state = 0;
    int step = 0;
    run(gate, [&](std::size_t item) {
      if (random.uniform() < 0.06) state = state == 0 ? 0.05 : 0;  // a clock that switches
      const double first = state + 0.0002 * (++step % 50);
      if (random.uniform() < 0.06) state = state == 0 ? 0.05 : 0;
      const double second = state + 0.0002 * (++step % 50);
      const double shift = item == 0 ? 0.05 : 0;
      Pair pair = noisy_pair(random, 1e6, 0.008, shift);
      const bool swapped = random.uniform() < 0.5;
      pair.baseline.time_ns *= 1 + (swapped ? second : first);
      pair.current.time_ns *= 1 + (swapped ? first : second);
      return pair;
    });
    found += gate.result(0).verdict == Verdict::kRegression;
    for (std::size_t item = 1; item < kItems; ++item)
      false_alarms += gate.result(item).verdict == Verdict::kRegression;
  }
  EXPECT_LE(false_alarms, 3);  // of 150 suites; the bound is 1 % each
  EXPECT_GE(found, kSuites * 95 / 100);
}

TEST(Verdicts, TheSuiteIsAsBadAsItsWorstItem) {
  using enum Verdict;
  EXPECT_EQ(worst_of({}), kInconclusive);
  EXPECT_EQ(worst_of({kPass, kImprovement}), kImprovement);
  EXPECT_EQ(worst_of({kPass, kInconclusive, kImprovement}), kInconclusive);
  EXPECT_EQ(worst_of({kInvalid, kInconclusive}), kInvalid);
  EXPECT_EQ(worst_of({kInvalid, kRegression, kPass}), kRegression);
  EXPECT_EQ(exit_code(kImprovement), 0);
  EXPECT_EQ(exit_code(kRegression), 1);
  EXPECT_EQ(exit_code(kInvalid), 2);
  EXPECT_EQ(exit_code(kInconclusive), 3);
}

}  // namespace
}  // namespace purlin::guard
