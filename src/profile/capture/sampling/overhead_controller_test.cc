// SPDX-License-Identifier: Apache-2.0
// The overhead controller in simulated programs: it is woken late, its calls take time, and every
// launch that is enqueued while tier 0 is open costs the program something.
#include "profile/capture/sampling/overhead_controller.h"

#include "profile/capture/sampling/testing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

namespace purlin::profile::capture {
namespace {

struct Program {
  std::function<double(std::int64_t)> launches_per_s;
  std::int64_t call_cost_ns = 100'000;  // opening, closing
  std::int64_t latest_wake_ns = 300'000;
  std::int64_t step_ns = 500'000;  // of the simulation
};

struct Outcome {
  double truth = 0, estimate = 0, recorded = 0, cost_ns = 0, worst_ten_seconds = 0;
  OverheadController::Totals totals;
  std::vector<int> opened;
  double first_second = 0;  // recorded, of its launches
};

// Estimates Σ launches by weighing what windows held, as ActivityAggregator does.
Outcome simulate(const ControllerOptions& options, const std::vector<Requirements>& tiers,
                 std::int64_t length_ns, const Program& program) {
  Outcome out;
  out.opened.resize(tiers.size());
  std::mt19937_64 random(options.seed + 99);
  OverheadController controller(options, tiers, 1);
  int open = OverheadController::kNone;
  double unweighted = 0, unpaid = 0;
  double known = 1;  // the weight of what is recorded; 0: not known before it is settled
  std::int64_t wake = 0;
  std::vector<double> cost_until;
  for (std::int64_t now = 1; now < length_ns; now += program.step_ns) {
    const double launches =
        program.launches_per_s(now) * static_cast<double>(program.step_ns) / 1e9;
    out.truth += launches;
    if (open == 0) {
      unweighted += launches;
      unpaid += launches;
      out.cost_ns += launches * options.costs.launch_ns;
      out.recorded += launches;
      if (now < kSecond) out.first_second += launches;
    }
    const bool buffer_full = unpaid > 4855;
    cost_until.push_back(out.cost_ns);
    if (now < wake && !buffer_full) continue;
    if (buffer_full || now >= controller.period_end_ns())
      controller.recorded(std::exchange(unpaid, 0), 0);
    const OverheadController::Decision decision = controller.decide(now);
    EXPECT_GT(decision.ask_again_ns, now);
    const auto late =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(program.latest_wake_ns));
    wake = decision.ask_again_ns == OverheadController::kNever ? OverheadController::kNever
                                                               : decision.ask_again_ns + late;
    const auto call = [&](int tier) {
      controller.spent(tier, program.call_cost_ns);
      out.cost_ns += static_cast<double>(program.call_cost_ns);
    };
    if (decision.tier != open && open != OverheadController::kNone) {
      controller.closed(open, now);
      call(open);
      if (open > 0) controller.spent(open, 2 * kMs), out.cost_ns += 2 * kMs;
      open = OverheadController::kNone;
    }
    if (decision.new_period) {
      const double weight = controller.take_weight().weight;
      out.estimate += std::exchange(unweighted, 0) * (known > 0 ? known : weight);
      known = controller.weight_is_final() ? controller.planned_weight() : 0;
    }
    if (decision.tier != open) {
      open = decision.tier;
      call(open);
      controller.opened(open, now);
      ++out.opened[static_cast<std::size_t>(open)];
    }
  }
  controller.recorded(unpaid, 0);
  controller.interrupted(length_ns);
  const double weight = controller.take_weight(true).weight;
  out.estimate += unweighted * (known > 0 ? known : weight);
  out.totals = controller.totals();
  const auto span = static_cast<std::size_t>(10 * kSecond / program.step_ns);
  for (std::size_t i = span; i < cost_until.size(); ++i)
    out.worst_ten_seconds =
        std::max(out.worst_ten_seconds, (cost_until[i] - cost_until[i - span]) / 1e10);
  return out;
}

// On a CUPTI whose windows leave nothing behind.
ControllerOptions seeded(std::uint64_t seed) {
  ControllerOptions options;
  options.seed = seed;
  options.costs.lasting_launch_ns = 0;
  options.costs.initialised_launch_ns = options.costs.initialised_node_ns =
      options.costs.initialised_tiny_node_ns = 0;
  return options;
}

Program steady(double launches_per_s) {
  Program program;
  program.launches_per_s = [=](std::int64_t) { return launches_per_s; };
  return program;
}

TEST(OverheadController, TheBudgetHoldsAtAnyRateOfLaunches) {
  for (const double rate : {0.0, 100.0, 3e3, 1e4, 5e4, 2e5, 1e6}) {
    const Outcome out = simulate(seeded(7), {Requirements{}}, 120 * kSecond, steady(rate));
    EXPECT_LE(out.cost_ns / 120e9, 0.01) << rate;
    EXPECT_LE(out.worst_ten_seconds, 0.021) << rate;  // the budget, and the start-up window's
    if (rate > 0) {
      EXPECT_NEAR(out.estimate / out.truth, 1, 0.02) << rate;
    }
    if (rate >= 1e4) {
      EXPECT_GT(out.cost_ns / 120e9, 0.004) << "a budget is there to be used: " << rate;
    }
  }
}

TEST(OverheadController, WhatCostsLittleIsRecordedThroughout) {
  const Outcome out = simulate(seeded(7), {Requirements{}}, 60 * kSecond, steady(1000));
  EXPECT_EQ(out.opened[0], 1);
  EXPECT_NEAR(out.recorded, out.truth, 1);  // the simulation opens after its first step
  EXPECT_NEAR(out.estimate, out.recorded, 1e-3);
}

TEST(OverheadController, BurstsAndPausesHoldTheBudgetToo) {
  Program program;
  for (const std::int64_t half : {50 * kMs, kSecond, 20 * kSecond}) {
    program.launches_per_s = [=](std::int64_t now) { return now / half % 2 == 1 ? 3e5 : 0.0; };
    const Outcome out = simulate(seeded(3), {Requirements{}}, 120 * kSecond, program);
    EXPECT_LE(out.cost_ns / 120e9, 0.0105) << half;
    EXPECT_LE(out.worst_ten_seconds, 0.026) << half;
    EXPECT_NEAR(out.estimate / out.truth, 1, 0.15) << half;
  }
}

// The mean over many runs is the truth, also for programs whose period is the overhead
// controller's.
TEST(OverheadController, WeightsAreUnbiasedOverSeeds) {
  for (const std::int64_t period : {std::int64_t{25}, std::int64_t{250}, std::int64_t{1000}}) {
    double ratios = 0, squares = 0;
    constexpr int kRuns = 60;
    for (int run = 0; run < kRuns; ++run) {
      Program program;
      program.launches_per_s = [=](std::int64_t now) {
        const double phase =
            std::fmod(static_cast<double>(now) / static_cast<double>(period * kMs), 1);
        return phase < 0.1 ? 2.5e5 : 2e4;
      };
      const Outcome out = simulate(seeded(static_cast<std::uint64_t>(run) + 1), {Requirements{}},
                                   30 * kSecond, program);
      ratios += out.estimate / out.truth;
      squares += std::pow(out.estimate / out.truth, 2);
    }
    const double mean = ratios / kRuns;
    const double error = std::sqrt(std::max(0.0, squares / kRuns - mean * mean) / kRuns);
    EXPECT_NEAR(mean, 1, 3 * error + 0.004) << period << " ms, ± " << error;
  }
}

// The last window represents all time that is left at the end.
TEST(OverheadController, AllOfTheTimeIsStoodForAtWhateverMomentTheProgramEnds) {
  for (int run = 0; run < 40; ++run) {
    const std::int64_t length = 700 * kMs + run * 137 * kMs;
    const Outcome out =
        simulate(seeded(static_cast<std::uint64_t>(run)), {Requirements{}}, length, steady(2e5));
    if (out.totals.windows < 2) {  // it ended before the first window
      EXPECT_NEAR(out.estimate, out.recorded, 1);
    } else {
      EXPECT_NEAR(out.estimate / out.truth, 1, 0.02) << length;
    }
    EXPECT_NEAR(out.totals.governed_ns, static_cast<double>(length), 2e6);
  }
}

// Windows that were asked for, closer to each other than those of the budget.
TEST(OverheadController, TheTimeBetweenCloseWindowsInFullIsStoodForToo) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const std::int64_t cell : {20 * kMs, 100 * kMs, 700 * kMs, 4 * kSecond}) {
      ControllerOptions options = seeded(seed);
      options.full_window_ns = cell / 2;
      options.full_cell_ns = cell;
      Program program = steady(1e5);
      program.step_ns = 100'000;
      program.latest_wake_ns = 100'000;
      const Outcome out = simulate(options, {Requirements{}}, 12 * kSecond, program);
      // No window represents the time after the last window.
      const double rest = static_cast<double>(cell) / 2 / 12e9;
      EXPECT_NEAR(out.estimate / out.truth, 1, 0.02 + rest) << cell / kMs << " ms, seed " << seed;
      EXPECT_LT(out.recorded, 0.9 * out.truth);
    }
  }
}

// Their price will be paid, so that the time between them may have windows of the budget from the
// head's end on, and is known.
TEST(OverheadController, WhereFullWindowsAreAskedForNothingIsUnseen) {
  ControllerOptions options;
  options.seed = 4;
  options.full_window_ns = 100 * kMs;
  options.full_cell_ns = 4 * kSecond;
  const Outcome out = simulate(options, {Requirements{}}, 30 * kSecond, steady(2e5));
  EXPECT_EQ(out.totals.unseen_ns, 0);
  EXPECT_NEAR(out.estimate / out.truth, 1, 0.05);
}

// A compiler tries out kernels that were not seen before, 20,000 launches a second. The steps after
// it are launched at the same rate. Each second record does not tell how many kernels were seen.
std::int64_t end_of_startup(std::int64_t news_until) {
  constexpr std::int64_t until = 20 * kSecond;
  ControllerOptions options = seeded(1);
  options.windows = false;
  OverheadController controller(options, {Requirements{}}, 1);
  bool open = false;
  std::size_t kernels = 1;
  for (std::int64_t now = 1; now < until; now += 20 * kMs) {
    if (now < news_until) ++kernels;
    if (open) controller.recorded(400, 0, 0, {}, now / (20 * kMs) % 2 == 0 ? kernels : 0);
    const OverheadController::Decision decision = controller.decide(now);
    if (open && decision.tier != 0) return now;
    if (!open && decision.tier == 0) controller.opened(0, now), open = true;
  }
  return until;
}

TEST(OverheadController, TheStartupWindowGoesOnWhileNewKernelsCome) {
  const std::int64_t known = end_of_startup(0);
  EXPECT_LT(known, 3 * kSecond);
  const std::int64_t with_news = end_of_startup(3 * kSecond);
  EXPECT_GT(with_news, 3 * kSecond + known / 8) << "no step was recorded";
  EXPECT_LT(with_news, 3 * kSecond + known / 3) << "a quarter of the budget is enough for steps";
  const std::int64_t endless = end_of_startup(20 * kSecond);
  EXPECT_NEAR(static_cast<double>(endless), 3.0 * static_cast<double>(known), 0.1 * kSecond)
      << "it may take three times its budget";
}

// CUPTI took a second to close a window in full. The launches recorded in that second need no
// window that represents them.
TEST(OverheadController, ClosingThatTakesLongIsNotStoodForTwice) {
  ControllerOptions options = seeded(1);
  options.full_window_ns = 10 * kMs;
  options.full_cell_ns = 20 * kMs;
  OverheadController controller(options, {Requirements{}}, 0);
  std::int64_t now = 0;
  OverheadController::Decision decision = controller.decide(now);
  controller.opened(0, now);
  controller.recorded(1e6, 0);  // the start-up window's end, and no budget left
  bool open = true, slow = false;
  double most_ns = 0;
  while (now < 5 * kSecond) {
    decision = controller.decide(now += kMs);
    if (open && decision.tier != 0) {
      if (!slow && !controller.weight_is_final()) now += (slow = true, kSecond);
      controller.closed(0, now);
      open = false;
    }
    if (decision.new_period) most_ns = std::max(most_ns, controller.take_weight().time_ns);
    if (!open && decision.tier == 0) controller.opened(0, now), open = true;
  }
  EXPECT_TRUE(slow);
  EXPECT_GT(most_ns, 10.0 * kMs);
  EXPECT_LT(most_ns, 100.0 * kMs);
}

// A training step of 40 ms launches 300 kernels in its first 8 ms. A window that sees a burst costs
// as much as five windows that see none. The excess of the start-up window must not shorten windows
// to a fiftieth of their periods. Such windows would represent half of the run.
TEST(OverheadController, BurstsDoNotMakeWindowsTooShortToTell) {
  double squares = 0;
  constexpr int kRuns = 60;
  for (int run = 0; run < kRuns; ++run) {
    ControllerOptions options;
    options.seed = static_cast<std::uint64_t>(run) + 1;
    Program program;
    program.launches_per_s = [=](std::int64_t now) {
      const std::int64_t at = (now + 7 * kMs * run) % (40 * kMs);
      return now > 4 * kSecond && at < 8 * kMs ? 298 / 0.008 : 0;
    };
    program.call_cost_ns = 300'000;
    const Outcome out = simulate(options, {Requirements{}}, 15 * kSecond, program);
    EXPECT_GT(out.totals.windows, 5);
    EXPECT_LE(out.cost_ns / 15e9, 0.01);
    squares += std::pow(out.estimate / out.truth - 1, 2);
  }
  EXPECT_LT(std::sqrt(squares / kRuns), 0.05);
}

// Windows would cost a quarter more than they may in a third of a second of each three: it does not
// matter whether the start-up window ends there.
TEST(OverheadController, ABurstAtTheHeadsEndDoesNotDecide) {
  for (int run = 0; run < 60; ++run) {
    ControllerOptions options;
    options.seed = static_cast<std::uint64_t>(run) + 1;
    Program program;
    program.launches_per_s = [=](std::int64_t now) {
      return (now + 50 * kMs * run) % (3 * kSecond) < 300 * kMs ? 14e3 : 6.5e3;
    };
    EXPECT_GT(simulate(options, {Requirements{}}, 15 * kSecond, program).totals.windows, 5) << run;
  }
}

// In a window of a hundredth of a millisecond, each launch would represent hundreds of launches.
TEST(OverheadController, AWindowThatIsHardlyOpenStandsForNothing) {
  for (const bool last : {false, true}) {
    ControllerOptions options = seeded(1);
    options.full_window_ns = 100 * kMs;
    options.full_cell_ns = 10 * kSecond;
    OverheadController controller(options, {Requirements{}}, 0);
    std::int64_t now = 0;
    OverheadController::Decision decision = controller.decide(now);
    controller.opened(0, now);
    controller.recorded(1e6, 0);  // the start-up window's end, and no budget left
    while (decision.tier == 0) decision = controller.decide(now += kMs);
    controller.closed(0, now);
    controller.take_weight();
    while (decision.tier != 0) decision = controller.decide(now = decision.ask_again_ns);
    controller.opened(0, now);
    controller.closed(0, now + 10'000);
    controller.interrupted(now + 10'000);
    EXPECT_EQ(controller.take_weight(last).weight > 1.01, last) << "there is no other at the end";
  }
}

TEST(OverheadController, AShortProgramHasItsBeginningInFull) {
  const Outcome fast = simulate(seeded(5), {Requirements{}}, 2 * kSecond, steady(2e5));
  EXPECT_GT(fast.first_second, 45'000);
  EXPECT_GE(fast.totals.windows, 3);
  EXPECT_LE(fast.cost_ns, 0.12e9);
  const Outcome slow = simulate(seeded(5), {Requirements{}}, 2 * kSecond, steady(3e3));
  EXPECT_NEAR(slow.recorded, slow.truth, 2);
}

TEST(OverheadController, AnOldProcessIsOpenedRarelyAndForLonger) {
  const Outcome out = simulate(seeded(3), {Requirements{}}, 2000 * kSecond, steady(2e5));
  const Outcome young = simulate(seeded(3), {Requirements{}}, 100 * kSecond, steady(2e5));
  EXPECT_LE(out.totals.windows, 400 * (1 + std::log(2000 / 100.0)) * 1.1);
  EXPECT_GT(young.totals.windows, 100);
  EXPECT_NEAR(out.estimate / out.truth, 1, 0.02);
  EXPECT_LE(out.cost_ns / 2000e9, 0.01);
  EXPECT_GT(out.cost_ns / 2000e9, 0.004) << "a budget is there to be used";
}

TEST(OverheadController, ABigBudgetBuysMore) {
  ControllerOptions options = seeded(1);
  options.budget = 0.05;
  const Outcome more = simulate(options, {Requirements{}}, 60 * kSecond, steady(2e5));
  const Outcome less = simulate(seeded(1), {Requirements{}}, 60 * kSecond, steady(2e5));
  EXPECT_LE(more.cost_ns / 60e9, 0.05);
  EXPECT_GT(more.recorded, 3 * less.recorded);
}

TEST(OverheadController, EveryLaunchWhateverItCosts) {
  ControllerOptions options;
  options.every_launch = true;
  const Outcome out = simulate(options, {Requirements{}}, 20 * kSecond, steady(3e5));
  EXPECT_NEAR(out.recorded, out.truth, 200);
  EXPECT_NEAR(out.estimate, out.recorded, 1e-3);
}

TEST(OverheadController, OtherTiersLiveFromTheirShare) {
  Requirements cheap, expensive;
  cheap.first_cost_ns = kMs;
  expensive.share = 0.3;
  for (const double rate : {100.0, 2e5}) {
    const Outcome out =
        simulate(seeded(2), {Requirements{}, cheap, expensive}, 100 * kSecond, steady(rate));
    EXPECT_LE(out.cost_ns / 100e9, 0.0115);
    EXPECT_GT(out.opened[1], 30) << rate;
    EXPECT_GT(out.opened[2], 30) << rate;
    EXPECT_NEAR(out.estimate / out.truth, 1, 0.02)
        << "what their windows kept from tier 0: " << rate;
  }
}

// A tier that the user asked for by name: a small budget does not starve it, and launches have
// their own budget next to it.
TEST(OverheadController, ATierMayHaveABudgetOfItsOwn) {
  Requirements counters;
  counters.min_budget = 0.05;
  counters.share = 0.02;
  counters.min_period_ns = 10 * kMs;
  counters.first_cost_ns = 0;
  const auto windows = [&](double least) {
    counters.min_budget = least;
    return simulate(seeded(3), {Requirements{}, counters}, 60 * kSecond, steady(1000)).opened[1];
  };
  // A window costs 2.2 ms here; 4 % of a minute is 2.4 s.
  EXPECT_GT(windows(0.05), 2 * windows(0));
  EXPECT_LT(windows(0.05), 0.05 * 60e3 / 2.2);
}

// Sampled stalls: no windows, and launches could not be recorded again.
TEST(OverheadController, ATierWithoutWindowsThatPinsLaunches) {
  Requirements stalls;
  stalls.windows = false;
  stalls.pins_launches = true;
  const Outcome out = simulate(seeded(3), {Requirements{}, stalls}, 60 * kSecond, steady(2e5));
  EXPECT_EQ(out.opened[0], 1);
  EXPECT_EQ(out.opened[1], 0);
  EXPECT_NEAR(out.recorded / out.truth, 1, 0.001);
}

// What opening again would cost for good is more than the budget: no window follows the start-up
// window.
TEST(OverheadController, ALaunchBoundProgramHasItsHeadOnly) {
  ControllerOptions options;
  const Outcome out = simulate(options, {Requirements{}}, 60 * kSecond, steady(6e4));
  EXPECT_EQ(out.opened[0], 1);
  EXPECT_NEAR(out.recorded, 0.05 / 1100e-9, 0.2 * 0.05 / 1100e-9);
  EXPECT_NEAR(out.estimate, out.recorded, 1e-3);  // at weight 1: it represents itself
  EXPECT_NEAR(out.totals.unseen_ns, 58.4e9, 1e9);
  EXPECT_NEAR(out.totals.governed_ns, 1.6e9, 1e9);
  // A budget that can bear it has windows all along.
  options.budget = 0.2;
  const Outcome rich = simulate(options, {Requirements{}}, 60 * kSecond, steady(6e4));
  EXPECT_NEAR(rich.estimate / rich.truth, 1, 0.02);
  // 8,000 a second: the lasting 0.4 % leave 0.6 % for windows.
  const Outcome modest = simulate(ControllerOptions(), {Requirements{}}, 60 * kSecond, steady(8e3));
  EXPECT_GT(modest.opened[0], 10);
  EXPECT_NEAR(modest.estimate / modest.truth, 1, 0.02);
  EXPECT_LE(modest.totals.spent_ns / 60e9, 0.0115);
}

// Hours of loading before the first step must not make it look idle.
TEST(OverheadController, ALaunchBoundProgramThatIsLongInStartingHasNoWindowsEither) {
  Program program;
  for (std::int64_t start = 10 * kSecond; start < 13 * kSecond; start += 170 * kMs) {
    program.launches_per_s = [=](std::int64_t now) { return now < start ? 100.0 : 6e4; };
    const Outcome out = simulate(ControllerOptions(), {Requirements{}}, 40 * kSecond, program);
    EXPECT_EQ(out.opened[0], 1) << start;
    EXPECT_GT(out.totals.unseen_ns, 20e9) << start;
  }
}

// What CUPTI takes by being there is of the budget, too.
TEST(OverheadController, GraphsOfShortNodesHaveFewerWindows) {
  const auto recorded = [](const CostModel& costs) {
    ControllerOptions options;
    options.costs = costs;
    OverheadController controller(options, {Requirements{}}, 0);
    bool open = false;
    double nodes = 0;
    for (std::int64_t now = 1; now < 60 * kSecond; now += kMs) {
      const OverheadController::Decision decision = controller.decide(now);
      if (open && decision.tier != 0) controller.closed(0, now);
      if (!open && decision.tier == 0) controller.opened(0, now);
      open = decision.tier == 0;
      if (open) controller.recorded(0, 500), nodes += 500;
    }
    return nodes;
  };
  CostModel free;
  free.initialised_node_ns = free.initialised_tiny_node_ns = free.lasting_node_ns = 0;
  const double few = recorded(CostModel()), many = recorded(free);
  EXPECT_GT(few, 90'000 + 5 * 2500);
  EXPECT_GT(many, 1.4 * few);
}

// What CUPTI takes while the program works is not less for its having rested since.
TEST(OverheadController, PresenceIsOfTheTimeAtWork) {
  const auto shares = [](bool rests) {
    ControllerOptions options;
    options.budget = 0.05;
    OverheadController controller(options, {Requirements{}}, 0);
    bool open = false;
    for (std::int64_t now = 1; now < 60 * kSecond; now += kMs) {
      const OverheadController::Decision decision = controller.decide(now);
      if (open && decision.tier != 0) controller.closed(0, now);
      if (!open && decision.tier == 0) controller.opened(0, now);
      open = decision.tier == 0;
      if (open && !(rests && now > 8 * kSecond)) controller.recorded(30, 0);
    }
    return std::pair(controller.unavoidable_share(), controller.presence_at_work());
  };
  const auto [steady, steady_work] = shares(false);
  const auto [resting, resting_work] = shares(true);
  EXPECT_LT(resting, 0.7 * steady);
  EXPECT_NEAR(resting_work / steady_work, 1, 0.1);
}

// A program is slower while it is recorded, and what CUPTI takes of its graphs' nodes depends on
// who waits for whom: as measured of whole programs (cost_model.h).
TEST(OverheadController, PresenceIsThatOfTheProgramUnrecorded) {
  const auto presence = [](double launches_per_s, double nodes_per_s) {
    OverheadController controller(ControllerOptions(), {Requirements{}}, 0);
    controller.decide(1);
    controller.opened(0, 1);
    controller.recorded(launches_per_s / 2, nodes_per_s / 2);
    controller.closed(0, kSecond / 2);
    controller.interrupted(kSecond / 2);
    return controller.presence_at_work();
  };
  EXPECT_NEAR(presence(90'000, 0), 0.025, 0.004);    // (a): 2.7 % measured
  EXPECT_NEAR(presence(56'000, 0), 0.014, 0.003);    // (b): 1.2 %
  EXPECT_NEAR(presence(0, 320'000), 0.075, 0.02);    // (d): 6.7 %, with windows 8.1 %
  EXPECT_NEAR(presence(0, 150'000), 0.0075, 0.002);  // nodes of 4.5 us: 0.8 %
  EXPECT_LT(presence(500, 0), 0.0002);
}

// Graphs of the start-up window stay instrumented until tier 0 is opened and closed once more.
TEST(OverheadController, GraphsAreWorthAnotherWindow) {
  OverheadController controller(ControllerOptions(), {Requirements{}}, 0);
  ASSERT_EQ(controller.decide(1).tier, 0);
  controller.opened(0, 1);
  controller.recorded(1000, 400'000);
  bool closed = false;
  int again = 0, cycles = 0;
  for (std::int64_t now = 250 * kMs; now < 20 * kSecond;) {
    const OverheadController::Decision decision = controller.decide(now);
    if (decision.tier == 0 && closed) ++again;
    if (decision.cycle) {
      EXPECT_EQ(decision.tier, OverheadController::kNone);
      EXPECT_EQ(again, 0) << "at the start-up window's end, not at some later window";
      ++cycles;
    }
    if (decision.tier != 0 && !closed) controller.closed(0, now), closed = true;
    if (!closed) controller.recorded(1000, 100'000);
    now = decision.ask_again_ns;
  }
  EXPECT_FALSE(controller.launch_bound());
  EXPECT_GE(again, 1);
  EXPECT_EQ(cycles, 1);
}

// The start-up window had many records. The overhead of reading them does not predict the overhead
// of a later window.
TEST(OverheadController, WhatRecordsCostMakesWindowsShorterNotRarer) {
  const auto windows = [](bool by_record) {
    OverheadController controller(seeded(5), {{}}, 0);
    bool open = false;
    for (std::int64_t now = 0; now < 8 * kSecond;) {
      const OverheadController::Decision decision = controller.decide(now);
      if (open != (decision.tier == 0)) {
        open = !open;
        open ? controller.opened(0, now) : controller.closed(0, now);
        controller.spent(0, 100'000);
      }
      const std::int64_t next =
          std::max(now + kMs, std::min(decision.ask_again_ns, now + 20 * kMs));
      const double nodes = open ? 435'000.0 * static_cast<double>(next - now) / 1e9 : 0;
      const auto folding = static_cast<std::int64_t>(nodes * 150);
      by_record ? controller.spent_on_records(folding) : controller.spent(0, folding);
      controller.recorded(0, nodes);
      now = next;
    }
    EXPECT_LT(controller.totals().spent_ns, 0.04 * 8e9);  // the start-up window among it
    return controller.totals().windows;
  };
  EXPECT_GT(windows(true), 2 * windows(false));
}

// Graphs stay unchanged when later launches would lose more time than the graphs save.
TEST(OverheadController, FewGraphsAreWorthNoCycle) {
  OverheadController controller(ControllerOptions(), {Requirements{}}, 0);
  ASSERT_EQ(controller.decide(1).tier, 0);
  controller.opened(0, 1);
  controller.recorded(60'000, 10'000);
  EXPECT_FALSE(controller.decide(250 * kMs).cycle);
  controller.closed(0, 250 * kMs);
  EXPECT_TRUE(controller.launch_bound());
  EXPECT_FALSE(controller.decide(20 * kSecond).cycle);
}

// The same programs with windows and without: in both cases the overhead of unchanged graphs
// ends.
TEST(OverheadController, WithoutWindowsNothingFollowsTheHead) {
  for (const bool windows : {true, false})
    for (const double nodes : {0.0, 400'000.0}) {
      ControllerOptions options = seeded(1);
      options.windows = windows;
      OverheadController controller(options, {Requirements{}}, 0);
      ASSERT_EQ(controller.decide(1).tier, 0);
      controller.opened(0, 1);
      controller.recorded(300'000, nodes);
      const OverheadController::Decision after = controller.decide(kSecond);
      EXPECT_EQ(after.cycle, windows || nodes > 0);
      if (after.tier == OverheadController::kNone) controller.closed(0, kSecond);
      int opened = 0;
      for (std::int64_t now = kSecond; now < 60 * kSecond; now += kMs)
        opened += controller.decide(now).tier == 0 ? 1 : 0;
      EXPECT_EQ(opened > 0, windows);
      EXPECT_EQ(controller.ended(), !windows);
      EXPECT_FALSE(controller.launch_bound());
    }
}

TEST(OverheadController, WhatIsAskedForIsRecordedWhateverItCosts) {
  OverheadController controller(ControllerOptions(), {Requirements{}}, 0);
  ASSERT_EQ(controller.decide(1).tier, 0);
  controller.opened(0, 1);
  controller.recorded(300'000, 0);
  EXPECT_EQ(controller.decide(kSecond).tier, OverheadController::kNone);
  controller.closed(0, kSecond);
  EXPECT_TRUE(controller.launch_bound());
  controller.record(2 * kSecond, kSecond);
  const OverheadController::Decision asked = controller.decide(2 * kSecond);
  EXPECT_EQ(asked.tier, 0);
  EXPECT_TRUE(asked.full);
  controller.opened(0, 2 * kSecond);
  EXPECT_FALSE(controller.launch_bound()) << "the price is paid now";
}

// CUPTI's initialisation, at the first window of an idle program, takes longer than this one.
TEST(OverheadController, AWindowAskedForIsAsLongAsItWasAskedFor) {
  ControllerOptions options;
  options.idle = true;
  OverheadController controller(options, {Requirements{}}, 0);
  (void)controller.decide(kSecond);
  controller.record(2 * kSecond, 200 * kMs);
  ASSERT_EQ(controller.decide(2 * kSecond + 5 * kMs).tier, 0);
  controller.opened(0, 2 * kSecond + 405 * kMs);
  for (std::int64_t now = 2 * kSecond + 405 * kMs; now < 2 * kSecond + 605 * kMs;) {
    const OverheadController::Decision decision = controller.decide(now);
    EXPECT_EQ(decision.tier, 0) << now;
    EXPECT_TRUE(decision.full) << now;
    now = decision.ask_again_ns;
  }
  EXPECT_EQ(controller.decide(2 * kSecond + 605 * kMs).tier, OverheadController::kNone);
  controller.closed(0, 2 * kSecond + 605 * kMs);
  EXPECT_EQ(controller.totals().recorded_ns, 200e6);
  EXPECT_EQ(controller.take_alone_ns(), 200e6);
  // One that never opened leaves nothing to a later one.
  controller.record(4 * kSecond, 200 * kMs);
  ASSERT_EQ(controller.decide(4 * kSecond).tier, 0);
  controller.refused(0, false, 4 * kSecond);
  EXPECT_EQ(controller.decide(5 * kSecond).tier, OverheadController::kNone);
  controller.start(6 * kSecond);
  ASSERT_EQ(controller.decide(6 * kSecond).tier, 0);
  controller.opened(0, 6 * kSecond);
  EXPECT_FALSE(controller.decide(6 * kSecond + kMs).full);
}

// Its closing comes some milliseconds after it was due, and what is recorded until then counts.
TEST(OverheadController, WhatIsRecordedStandsForItselfAtLeast) {
  ControllerOptions idle;
  idle.idle = true;
  OverheadController asked(idle, {Requirements{}}, 0);
  asked.record(kSecond, 200 * kMs);
  ASSERT_EQ(asked.decide(kSecond).tier, 0);
  asked.opened(0, kSecond);
  ASSERT_EQ(asked.decide(kSecond + 200 * kMs).tier, OverheadController::kNone);
  asked.closed(0, kSecond + 207 * kMs);
  EXPECT_EQ(asked.totals().recorded_ns, 207e6);
  EXPECT_EQ(asked.totals().governed_ns, 207e6);
  EXPECT_EQ(asked.take_alone_ns(), 207e6);

  OverheadController bound(ControllerOptions(), {Requirements{}}, 0);
  ASSERT_EQ(bound.decide(1).tier, 0);
  bound.opened(0, 1);
  bound.recorded(300'000, 0);
  ASSERT_EQ(bound.decide(kSecond + 1).tier, OverheadController::kNone);
  bound.closed(0, kSecond + 7 * kMs + 1);
  bound.interrupted(2 * kSecond + 1);
  EXPECT_EQ(bound.totals().recorded_ns, 1007e6);
  EXPECT_EQ(bound.totals().governed_ns, 1007e6);
  EXPECT_EQ(bound.totals().unseen_ns, 993e6);
}

TEST(OverheadController, ARefusedTierStaysShut) {
  Requirements eager;
  eager.first_cost_ns = 0;
  OverheadController controller(ControllerOptions(), {Requirements{}, eager}, 0);
  for (std::int64_t now = 1; now < 10 * kSecond;) {
    const OverheadController::Decision decision = controller.decide(now);
    if (decision.tier == 1) controller.refused(1, true, now);
    if (now > 5 * kSecond) {
      EXPECT_EQ(decision.tier, 0);
    }
    now = decision.ask_again_ns;
  }
}

TEST(OverheadController, WhereLaunchesAreRefusedItAsksAgainLater) {
  OverheadController controller({}, {Requirements{}}, 0);
  ASSERT_EQ(controller.decide(1).tier, 0);
  controller.refused(0, false, 1);
  const OverheadController::Decision later = controller.decide(2);
  EXPECT_EQ(later.tier, OverheadController::kNone);
  EXPECT_GT(later.ask_again_ns, 50 * kMs);
  const OverheadController::Decision again = controller.decide(later.ask_again_ns);
  EXPECT_EQ(again.tier, 0);
  EXPECT_TRUE(again.new_period);
}

TEST(OverheadController, IdleUntilStartedAndOnDemand) {
  ControllerOptions options;
  options.idle = true;
  OverheadController controller(options, {Requirements{}}, 0);
  EXPECT_EQ(controller.decide(kSecond).tier, OverheadController::kNone);
  EXPECT_EQ(controller.decide(kSecond).ask_again_ns, OverheadController::kNever);
  controller.record(2 * kSecond, 3 * kSecond);
  std::int64_t now = 2 * kSecond;
  for (; now < 5 * kSecond;) {
    const OverheadController::Decision decision = controller.decide(now);
    EXPECT_EQ(decision.tier, 0);
    EXPECT_TRUE(decision.full);
    controller.opened(0, now);
    now = decision.ask_again_ns;
  }
  EXPECT_EQ(now, 5 * kSecond);
  EXPECT_EQ(controller.decide(now).tier, OverheadController::kNone);
  controller.start(6 * kSecond);
  EXPECT_EQ(controller.decide(6 * kSecond).tier, 0);
  EXPECT_FALSE(controller.decide(6 * kSecond).full);
  controller.stop(7 * kSecond);
  EXPECT_EQ(controller.decide(7 * kSecond).tier, OverheadController::kNone);
}

TEST(OverheadController, FullWindowsComeOnceInEachCellAtAnotherPlace) {
  ControllerOptions options;
  options.full_window_ns = 2 * kSecond;
  options.full_cell_ns = 20 * kSecond;
  OverheadController controller(options, {Requirements{}}, 0);
  double full[10] = {};
  std::vector<std::int64_t> begins;
  bool was = false;
  for (std::int64_t now = 1; now < 200 * kSecond; now += 10 * kMs) {
    const OverheadController::Decision decision = controller.decide(now);
    if (decision.full && !was) begins.push_back(now % (20 * kSecond));
    if (decision.full) full[now / (20 * kSecond)] += 0.01;
    was = decision.full;
  }
  for (const double seconds : full) EXPECT_NEAR(seconds, 2, 0.05);
  ASSERT_EQ(begins.size(), 10u);
  EXPECT_NE(begins[0] / kSecond, begins[1] / kSecond);
}

// While another client has CUPTI, no time is represented. Afterwards a new period begins.
TEST(OverheadController, TimeAsideIsNobodys) {
  OverheadController controller({}, {Requirements{}}, 0);
  ASSERT_EQ(controller.decide(1).tier, 0);
  controller.opened(0, 1);
  controller.closed(0, 100 * kMs);
  controller.interrupted(100 * kMs);
  EXPECT_NEAR(controller.take_weight().weight, 1, 1e-6);
  const OverheadController::Decision after = controller.decide(50 * kSecond);
  EXPECT_EQ(after.tier, 0);
  EXPECT_TRUE(after.new_period);
  controller.opened(0, 50 * kSecond);
  controller.interrupted(50 * kSecond + 50 * kMs);
  EXPECT_NEAR(controller.take_weight().weight, 1, 1e-6);
  EXPECT_NEAR(controller.totals().governed_ns, 150e6, 10);
}

}  // namespace
}  // namespace purlin::profile::capture
