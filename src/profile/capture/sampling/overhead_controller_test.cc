// SPDX-License-Identifier: Apache-2.0
// The governor in simulated programs: it is woken late, its calls take time, and every launch that
// is enqueued while tier 0 is open costs the program something.
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
  Governor::Totals totals;
  std::vector<int> opened;
  double first_second = 0;  // recorded, of its launches
};

// Estimates Σ launches by weighing what windows held, as Folding does.
Outcome simulate(const GovernorOptions& options, const std::vector<Wishes>& tiers,
                 std::int64_t length_ns, const Program& program) {
  Outcome out;
  out.opened.resize(tiers.size());
  std::mt19937_64 random(options.seed + 99);
  Governor governor(options, tiers, 1);
  int open = Governor::kNone;
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
    if (buffer_full || now >= governor.period_end_ns())
      governor.recorded(std::exchange(unpaid, 0), 0);
    const Governor::Decision decision = governor.decide(now);
    EXPECT_GT(decision.ask_again_ns, now);
    const auto late =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(program.latest_wake_ns));
    wake =
        decision.ask_again_ns == Governor::kNever ? Governor::kNever : decision.ask_again_ns + late;
    const auto call = [&](int tier) {
      governor.spent(tier, program.call_cost_ns);
      out.cost_ns += static_cast<double>(program.call_cost_ns);
    };
    if (decision.tier != open && open != Governor::kNone) {
      governor.closed(open, now);
      call(open);
      if (open > 0) governor.spent(open, 2 * kMs), out.cost_ns += 2 * kMs;
      open = Governor::kNone;
    }
    if (decision.new_period) {
      const double weight = governor.take_weight().weight;
      out.estimate += std::exchange(unweighted, 0) * (known > 0 ? known : weight);
      known = governor.weight_is_final() ? governor.planned_weight() : 0;
    }
    if (decision.tier != open) {
      open = decision.tier;
      call(open);
      governor.opened(open, now);
      ++out.opened[static_cast<std::size_t>(open)];
    }
  }
  governor.recorded(unpaid, 0);
  governor.interrupted(length_ns);
  const double weight = governor.take_weight(true).weight;
  out.estimate += unweighted * (known > 0 ? known : weight);
  out.totals = governor.totals();
  const auto span = static_cast<std::size_t>(10 * kSecond / program.step_ns);
  for (std::size_t i = span; i < cost_until.size(); ++i)
    out.worst_ten_seconds =
        std::max(out.worst_ten_seconds, (cost_until[i] - cost_until[i - span]) / 1e10);
  return out;
}

// On a CUPTI whose windows leave nothing behind.
GovernorOptions seeded(std::uint64_t seed) {
  GovernorOptions options;
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

TEST(Governor, TheBudgetHoldsAtAnyRateOfLaunches) {
  for (const double rate : {0.0, 100.0, 3e3, 1e4, 5e4, 2e5, 1e6}) {
    const Outcome out = simulate(seeded(7), {Wishes{}}, 120 * kSecond, steady(rate));
    EXPECT_LE(out.cost_ns / 120e9, 0.01) << rate;
    EXPECT_LE(out.worst_ten_seconds, 0.021) << rate;  // the budget, and the head's
    if (rate > 0) {
      EXPECT_NEAR(out.estimate / out.truth, 1, 0.02) << rate;
    }
    if (rate >= 1e4) {
      EXPECT_GT(out.cost_ns / 120e9, 0.004) << "a budget is there to be used: " << rate;
    }
  }
}

TEST(Governor, WhatCostsLittleIsRecordedThroughout) {
  const Outcome out = simulate(seeded(7), {Wishes{}}, 60 * kSecond, steady(1000));
  EXPECT_EQ(out.opened[0], 1);
  EXPECT_NEAR(out.recorded, out.truth, 1);  // the simulation opens after its first step
  EXPECT_NEAR(out.estimate, out.recorded, 1e-3);
}

TEST(Governor, BurstsAndPausesHoldTheBudgetToo) {
  Program program;
  for (const std::int64_t half : {50 * kMs, kSecond, 20 * kSecond}) {
    program.launches_per_s = [=](std::int64_t now) { return now / half % 2 == 1 ? 3e5 : 0.0; };
    const Outcome out = simulate(seeded(3), {Wishes{}}, 120 * kSecond, program);
    EXPECT_LE(out.cost_ns / 120e9, 0.0105) << half;
    EXPECT_LE(out.worst_ten_seconds, 0.026) << half;
    EXPECT_NEAR(out.estimate / out.truth, 1, 0.15) << half;
  }
}

// The mean over many runs is the truth, also for programs whose period is the governor's.
TEST(Governor, WeightsAreUnbiasedOverSeeds) {
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
      const Outcome out =
          simulate(seeded(static_cast<std::uint64_t>(run) + 1), {Wishes{}}, 30 * kSecond, program);
      ratios += out.estimate / out.truth;
      squares += std::pow(out.estimate / out.truth, 2);
    }
    const double mean = ratios / kRuns;
    const double error = std::sqrt(std::max(0.0, squares / kRuns - mean * mean) / kRuns);
    EXPECT_NEAR(mean, 1, 3 * error + 0.004) << period << " ms, ± " << error;
  }
}

// Whatever is left at the end is stood for by the last window.
TEST(Governor, AllOfTheTimeIsStoodForAtWhateverMomentTheProgramEnds) {
  for (int run = 0; run < 40; ++run) {
    const std::int64_t length = 700 * kMs + run * 137 * kMs;
    const Outcome out =
        simulate(seeded(static_cast<std::uint64_t>(run)), {Wishes{}}, length, steady(2e5));
    if (out.totals.windows < 2) {  // it ended before the first window
      EXPECT_NEAR(out.estimate, out.recorded, 1);
    } else {
      EXPECT_NEAR(out.estimate / out.truth, 1, 0.02) << length;
    }
    EXPECT_NEAR(out.totals.governed_ns, static_cast<double>(length), 2e6);
  }
}

// Windows that were asked for, closer to each other than those of the budget.
TEST(Governor, TheTimeBetweenCloseWindowsInFullIsStoodForToo) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    for (const std::int64_t cell : {20 * kMs, 100 * kMs, 700 * kMs, 4 * kSecond}) {
      GovernorOptions options = seeded(seed);
      options.full_window_ns = cell / 2;
      options.full_cell_ns = cell;
      Program program = steady(1e5);
      program.step_ns = 100'000;
      program.latest_wake_ns = 100'000;
      const Outcome out = simulate(options, {Wishes{}}, 12 * kSecond, program);
      // What comes after the last window has none to stand for it.
      const double rest = static_cast<double>(cell) / 2 / 12e9;
      EXPECT_NEAR(out.estimate / out.truth, 1, 0.02 + rest) << cell / kMs << " ms, seed " << seed;
      EXPECT_LT(out.recorded, 0.9 * out.truth);
    }
  }
}

// Their price will be paid, so that the time between them may have windows of the budget from the
// head's end on, and is known.
TEST(Governor, WhereFullWindowsAreAskedForNothingIsUnseen) {
  GovernorOptions options;
  options.seed = 4;
  options.full_window_ns = 100 * kMs;
  options.full_cell_ns = 4 * kSecond;
  const Outcome out = simulate(options, {Wishes{}}, 30 * kSecond, steady(2e5));
  EXPECT_EQ(out.totals.unseen_ns, 0);
  EXPECT_NEAR(out.estimate / out.truth, 1, 0.05);
}

// CUPTI took a second to close a window in full: what was recorded then needs nobody to stand for
// it.
TEST(Governor, ClosingThatTakesLongIsNotStoodForTwice) {
  GovernorOptions options = seeded(1);
  options.full_window_ns = 10 * kMs;
  options.full_cell_ns = 20 * kMs;
  Governor governor(options, {Wishes{}}, 0);
  std::int64_t now = 0;
  Governor::Decision decision = governor.decide(now);
  governor.opened(0, now);
  governor.recorded(1e6, 0);  // the head's end, and no budget left
  bool open = true, slow = false;
  double most_ns = 0;
  while (now < 5 * kSecond) {
    decision = governor.decide(now += kMs);
    if (open && decision.tier != 0) {
      if (!slow && !governor.weight_is_final()) now += (slow = true, kSecond);
      governor.closed(0, now);
      open = false;
    }
    if (decision.new_period) most_ns = std::max(most_ns, governor.take_weight().time_ns);
    if (!open && decision.tier == 0) governor.opened(0, now), open = true;
  }
  EXPECT_TRUE(slow);
  EXPECT_GT(most_ns, 10.0 * kMs);
  EXPECT_LT(most_ns, 100.0 * kMs);
}

// A training step of 40 ms launches 300 kernels in its first 8: a window that sees a burst costs as
// much as five that see none, and what the head took too much is not paid back by windows of a
// fiftieth of their periods, which would then stand for half of the run.
TEST(Governor, BurstsDoNotMakeWindowsTooShortToTell) {
  double squares = 0;
  constexpr int kRuns = 60;
  for (int run = 0; run < kRuns; ++run) {
    GovernorOptions options;
    options.seed = static_cast<std::uint64_t>(run) + 1;
    Program program;
    program.launches_per_s = [=](std::int64_t now) {
      const std::int64_t at = (now + 7 * kMs * run) % (40 * kMs);
      return now > 4 * kSecond && at < 8 * kMs ? 298 / 0.008 : 0;
    };
    program.call_cost_ns = 300'000;
    const Outcome out = simulate(options, {Wishes{}}, 15 * kSecond, program);
    EXPECT_GT(out.totals.windows, 5);
    EXPECT_LE(out.cost_ns / 15e9, 0.01);
    squares += std::pow(out.estimate / out.truth - 1, 2);
  }
  EXPECT_LT(std::sqrt(squares / kRuns), 0.05);
}

// Windows would cost a quarter more than they may in a third of a second of each three: it does not
// matter whether the head ends there.
TEST(Governor, ABurstAtTheHeadsEndDoesNotDecide) {
  for (int run = 0; run < 60; ++run) {
    GovernorOptions options;
    options.seed = static_cast<std::uint64_t>(run) + 1;
    Program program;
    program.launches_per_s = [=](std::int64_t now) {
      return (now + 50 * kMs * run) % (3 * kSecond) < 300 * kMs ? 14e3 : 6.5e3;
    };
    EXPECT_GT(simulate(options, {Wishes{}}, 15 * kSecond, program).totals.windows, 5) << run;
  }
}

// A window of a hundredth of a millisecond would stand for hundreds of launches with each of its.
TEST(Governor, AWindowThatIsHardlyOpenStandsForNothing) {
  for (const bool last : {false, true}) {
    GovernorOptions options = seeded(1);
    options.full_window_ns = 100 * kMs;
    options.full_cell_ns = 10 * kSecond;
    Governor governor(options, {Wishes{}}, 0);
    std::int64_t now = 0;
    Governor::Decision decision = governor.decide(now);
    governor.opened(0, now);
    governor.recorded(1e6, 0);  // the head's end, and no budget left
    while (decision.tier == 0) decision = governor.decide(now += kMs);
    governor.closed(0, now);
    governor.take_weight();
    while (decision.tier != 0) decision = governor.decide(now = decision.ask_again_ns);
    governor.opened(0, now);
    governor.closed(0, now + 10'000);
    governor.interrupted(now + 10'000);
    EXPECT_EQ(governor.take_weight(last).weight > 1.01, last) << "there is no other at the end";
  }
}

TEST(Governor, AShortProgramHasItsBeginningInFull) {
  const Outcome fast = simulate(seeded(5), {Wishes{}}, 2 * kSecond, steady(2e5));
  EXPECT_GT(fast.first_second, 45'000);
  EXPECT_GE(fast.totals.windows, 3);
  EXPECT_LE(fast.cost_ns, 0.12e9);
  const Outcome slow = simulate(seeded(5), {Wishes{}}, 2 * kSecond, steady(3e3));
  EXPECT_NEAR(slow.recorded, slow.truth, 2);
}

TEST(Governor, AnOldProcessIsOpenedRarelyAndForLonger) {
  const Outcome out = simulate(seeded(3), {Wishes{}}, 2000 * kSecond, steady(2e5));
  const Outcome young = simulate(seeded(3), {Wishes{}}, 100 * kSecond, steady(2e5));
  EXPECT_LE(out.totals.windows, 400 * (1 + std::log(2000 / 100.0)) * 1.1);
  EXPECT_GT(young.totals.windows, 100);
  EXPECT_NEAR(out.estimate / out.truth, 1, 0.02);
  EXPECT_LE(out.cost_ns / 2000e9, 0.01);
  EXPECT_GT(out.cost_ns / 2000e9, 0.004) << "a budget is there to be used";
}

TEST(Governor, ABigBudgetBuysMore) {
  GovernorOptions options = seeded(1);
  options.budget = 0.05;
  const Outcome more = simulate(options, {Wishes{}}, 60 * kSecond, steady(2e5));
  const Outcome less = simulate(seeded(1), {Wishes{}}, 60 * kSecond, steady(2e5));
  EXPECT_LE(more.cost_ns / 60e9, 0.05);
  EXPECT_GT(more.recorded, 3 * less.recorded);
}

TEST(Governor, EveryLaunchWhateverItCosts) {
  GovernorOptions options;
  options.every_launch = true;
  const Outcome out = simulate(options, {Wishes{}}, 20 * kSecond, steady(3e5));
  EXPECT_NEAR(out.recorded, out.truth, 200);
  EXPECT_NEAR(out.estimate, out.recorded, 1e-3);
}

TEST(Governor, OtherTiersLiveFromTheirShare) {
  Wishes cheap, dear;
  cheap.first_cost_ns = kMs;
  dear.share = 0.3;
  for (const double rate : {100.0, 2e5}) {
    const Outcome out = simulate(seeded(2), {Wishes{}, cheap, dear}, 100 * kSecond, steady(rate));
    EXPECT_LE(out.cost_ns / 100e9, 0.0115);
    EXPECT_GT(out.opened[1], 30) << rate;
    EXPECT_GT(out.opened[2], 30) << rate;
    EXPECT_NEAR(out.estimate / out.truth, 1, 0.02)
        << "what their windows kept from tier 0: " << rate;
  }
}

// Asked for by name: a small budget does not starve it, and launches have theirs beside it.
TEST(Governor, ATierMayHaveABudgetOfItsOwn) {
  Wishes counters;
  counters.least_budget = 0.05;
  counters.share = 0.02;
  counters.least_period_ns = 10 * kMs;
  counters.first_cost_ns = 0;
  const auto windows = [&](double least) {
    counters.least_budget = least;
    return simulate(seeded(3), {Wishes{}, counters}, 60 * kSecond, steady(1000)).opened[1];
  };
  // A window costs 2.2 ms here; 4 % of a minute is 2.4 s.
  EXPECT_GT(windows(0.05), 2 * windows(0));
  EXPECT_LT(windows(0.05), 0.05 * 60e3 / 2.2);
}

// Sampled stalls: no windows, and launches could not be recorded again.
TEST(Governor, ATierWithoutWindowsThatPinsLaunches) {
  Wishes stalls;
  stalls.windows = false;
  stalls.pins_launches = true;
  const Outcome out = simulate(seeded(3), {Wishes{}, stalls}, 60 * kSecond, steady(2e5));
  EXPECT_EQ(out.opened[0], 1);
  EXPECT_EQ(out.opened[1], 0);
  EXPECT_NEAR(out.recorded / out.truth, 1, 0.001);
}

// What opening again would cost for good is more than the budget: the head is all there is.
TEST(Governor, ALaunchBoundProgramHasItsHeadOnly) {
  GovernorOptions options;
  const Outcome out = simulate(options, {Wishes{}}, 60 * kSecond, steady(6e4));
  EXPECT_EQ(out.opened[0], 1);
  EXPECT_NEAR(out.recorded, 0.05 / 1100e-9, 0.2 * 0.05 / 1100e-9);
  EXPECT_NEAR(out.estimate, out.recorded, 1e-3);  // at weight 1: it stands for itself
  EXPECT_NEAR(out.totals.unseen_ns, 58.4e9, 1e9);
  EXPECT_NEAR(out.totals.governed_ns, 1.6e9, 1e9);
  // A budget that can bear it has windows all along.
  options.budget = 0.2;
  const Outcome rich = simulate(options, {Wishes{}}, 60 * kSecond, steady(6e4));
  EXPECT_NEAR(rich.estimate / rich.truth, 1, 0.02);
  // 8,000 a second: the lasting 0.4 % leave 0.6 % for windows.
  const Outcome modest = simulate(GovernorOptions(), {Wishes{}}, 60 * kSecond, steady(8e3));
  EXPECT_GT(modest.opened[0], 10);
  EXPECT_NEAR(modest.estimate / modest.truth, 1, 0.02);
  EXPECT_LE(modest.totals.spent_ns / 60e9, 0.0115);
}

// Hours of loading before the first step must not make it look idle.
TEST(Governor, ALaunchBoundProgramThatIsLongInStartingHasNoWindowsEither) {
  Program program;
  for (std::int64_t start = 10 * kSecond; start < 13 * kSecond; start += 170 * kMs) {
    program.launches_per_s = [=](std::int64_t now) { return now < start ? 100.0 : 6e4; };
    const Outcome out = simulate(GovernorOptions(), {Wishes{}}, 40 * kSecond, program);
    EXPECT_EQ(out.opened[0], 1) << start;
    EXPECT_GT(out.totals.unseen_ns, 20e9) << start;
  }
}

// What CUPTI takes by being there is of the budget, too.
TEST(Governor, GraphsOfShortNodesHaveFewerWindows) {
  const auto recorded = [](const CostModel& costs) {
    GovernorOptions options;
    options.costs = costs;
    Governor governor(options, {Wishes{}}, 0);
    bool open = false;
    double nodes = 0;
    for (std::int64_t now = 1; now < 60 * kSecond; now += kMs) {
      const Governor::Decision decision = governor.decide(now);
      if (open && decision.tier != 0) governor.closed(0, now);
      if (!open && decision.tier == 0) governor.opened(0, now);
      open = decision.tier == 0;
      if (open) governor.recorded(0, 500), nodes += 500;
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
TEST(Governor, PresenceIsOfTheTimeAtWork) {
  const auto shares = [](bool rests) {
    GovernorOptions options;
    options.budget = 0.05;
    Governor governor(options, {Wishes{}}, 0);
    bool open = false;
    for (std::int64_t now = 1; now < 60 * kSecond; now += kMs) {
      const Governor::Decision decision = governor.decide(now);
      if (open && decision.tier != 0) governor.closed(0, now);
      if (!open && decision.tier == 0) governor.opened(0, now);
      open = decision.tier == 0;
      if (open && !(rests && now > 8 * kSecond)) governor.recorded(30, 0);
    }
    return std::pair(governor.unavoidable_share(), governor.presence_at_work());
  };
  const auto [steady, steady_work] = shares(false);
  const auto [resting, resting_work] = shares(true);
  EXPECT_LT(resting, 0.7 * steady);
  EXPECT_NEAR(resting_work / steady_work, 1, 0.1);
}

// A program is slower while it is recorded, and what CUPTI takes of its graphs' nodes depends on
// who waits for whom: as measured of whole programs (cost_model.h).
TEST(Governor, PresenceIsThatOfTheProgramUnrecorded) {
  const auto presence = [](double launches_per_s, double nodes_per_s) {
    Governor governor(GovernorOptions(), {Wishes{}}, 0);
    governor.decide(1);
    governor.opened(0, 1);
    governor.recorded(launches_per_s / 2, nodes_per_s / 2);
    governor.closed(0, kSecond / 2);
    governor.interrupted(kSecond / 2);
    return governor.presence_at_work();
  };
  EXPECT_NEAR(presence(90'000, 0), 0.025, 0.004);    // (a): 2.7 % measured
  EXPECT_NEAR(presence(56'000, 0), 0.014, 0.003);    // (b): 1.2 %
  EXPECT_NEAR(presence(0, 320'000), 0.075, 0.02);    // (d): 6.7 %, with windows 8.1 %
  EXPECT_NEAR(presence(0, 150'000), 0.0075, 0.002);  // nodes of 4.5 us: 0.8 %
  EXPECT_LT(presence(500, 0), 0.0002);
}

// Graphs of the head stay instrumented until tier 0 is opened and closed once more.
TEST(Governor, GraphsAreWorthAnotherWindow) {
  Governor governor(GovernorOptions(), {Wishes{}}, 0);
  ASSERT_EQ(governor.decide(1).tier, 0);
  governor.opened(0, 1);
  governor.recorded(1000, 400'000);
  bool closed = false;
  int again = 0, cycles = 0;
  for (std::int64_t now = 250 * kMs; now < 20 * kSecond;) {
    const Governor::Decision decision = governor.decide(now);
    if (decision.tier == 0 && closed) ++again;
    if (decision.cycle) {
      EXPECT_EQ(decision.tier, Governor::kNone);
      EXPECT_EQ(again, 0) << "at the head's end, not at some later window";
      ++cycles;
    }
    if (decision.tier != 0 && !closed) governor.closed(0, now), closed = true;
    if (!closed) governor.recorded(1000, 100'000);
    now = decision.ask_again_ns;
  }
  EXPECT_FALSE(governor.launch_bound());
  EXPECT_GE(again, 1);
  EXPECT_EQ(cycles, 1);
}

// The head's records were many: what they cost to take in says nothing of a window to come.
TEST(Governor, WhatRecordsCostMakesWindowsShorterNotRarer) {
  const auto windows = [](bool by_record) {
    Governor governor(seeded(5), {{}}, 0);
    bool open = false;
    for (std::int64_t now = 0; now < 8 * kSecond;) {
      const Governor::Decision decision = governor.decide(now);
      if (open != (decision.tier == 0)) {
        open = !open;
        open ? governor.opened(0, now) : governor.closed(0, now);
        governor.spent(0, 100'000);
      }
      const std::int64_t next =
          std::max(now + kMs, std::min(decision.ask_again_ns, now + 20 * kMs));
      const double nodes = open ? 435'000.0 * static_cast<double>(next - now) / 1e9 : 0;
      const auto folding = static_cast<std::int64_t>(nodes * 150);
      by_record ? governor.spent_on_records(folding) : governor.spent(0, folding);
      governor.recorded(0, nodes);
      now = next;
    }
    EXPECT_LT(governor.totals().spent_ns, 0.04 * 8e9);  // the head among it
    return governor.totals().windows;
  };
  EXPECT_GT(windows(true), 2 * windows(false));
}

// Where later launches would pay more than the graphs save, they are left as they are.
TEST(Governor, FewGraphsAreWorthNoCycle) {
  Governor governor(GovernorOptions(), {Wishes{}}, 0);
  ASSERT_EQ(governor.decide(1).tier, 0);
  governor.opened(0, 1);
  governor.recorded(60'000, 10'000);
  EXPECT_FALSE(governor.decide(250 * kMs).cycle);
  governor.closed(0, 250 * kMs);
  EXPECT_TRUE(governor.launch_bound());
  EXPECT_FALSE(governor.decide(20 * kSecond).cycle);
}

// The same programs with windows and without: of what graphs cost as they are a program is rid
// alike.
TEST(Governor, WithoutWindowsNothingFollowsTheHead) {
  for (const bool windows : {true, false})
    for (const double nodes : {0.0, 400'000.0}) {
      GovernorOptions options = seeded(1);
      options.windows = windows;
      Governor governor(options, {Wishes{}}, 0);
      ASSERT_EQ(governor.decide(1).tier, 0);
      governor.opened(0, 1);
      governor.recorded(300'000, nodes);
      const Governor::Decision after = governor.decide(kSecond);
      EXPECT_EQ(after.cycle, windows || nodes > 0);
      if (after.tier == Governor::kNone) governor.closed(0, kSecond);
      int opened = 0;
      for (std::int64_t now = kSecond; now < 60 * kSecond; now += kMs)
        opened += governor.decide(now).tier == 0 ? 1 : 0;
      EXPECT_EQ(opened > 0, windows);
      EXPECT_EQ(governor.ended(), !windows);
      EXPECT_FALSE(governor.launch_bound());
    }
}

TEST(Governor, WhatIsAskedForIsRecordedWhateverItCosts) {
  Governor governor(GovernorOptions(), {Wishes{}}, 0);
  ASSERT_EQ(governor.decide(1).tier, 0);
  governor.opened(0, 1);
  governor.recorded(300'000, 0);
  EXPECT_EQ(governor.decide(kSecond).tier, Governor::kNone);
  governor.closed(0, kSecond);
  EXPECT_TRUE(governor.launch_bound());
  governor.record(2 * kSecond, kSecond);
  const Governor::Decision asked = governor.decide(2 * kSecond);
  EXPECT_EQ(asked.tier, 0);
  EXPECT_TRUE(asked.full);
  governor.opened(0, 2 * kSecond);
  EXPECT_FALSE(governor.launch_bound()) << "the price is paid now";
}

// CUPTI's initialisation, at the first window of an idle program, takes longer than this one.
TEST(Governor, AWindowAskedForIsAsLongAsItWasAskedFor) {
  GovernorOptions options;
  options.idle = true;
  Governor governor(options, {Wishes{}}, 0);
  (void)governor.decide(kSecond);
  governor.record(2 * kSecond, 200 * kMs);
  ASSERT_EQ(governor.decide(2 * kSecond + 5 * kMs).tier, 0);
  governor.opened(0, 2 * kSecond + 405 * kMs);
  for (std::int64_t now = 2 * kSecond + 405 * kMs; now < 2 * kSecond + 605 * kMs;) {
    const Governor::Decision decision = governor.decide(now);
    EXPECT_EQ(decision.tier, 0) << now;
    EXPECT_TRUE(decision.full) << now;
    now = decision.ask_again_ns;
  }
  EXPECT_EQ(governor.decide(2 * kSecond + 605 * kMs).tier, Governor::kNone);
  governor.closed(0, 2 * kSecond + 605 * kMs);
  EXPECT_EQ(governor.totals().recorded_ns, 200e6);
  EXPECT_EQ(governor.take_alone_ns(), 200e6);
  // One that never opened leaves nothing to a later one.
  governor.record(4 * kSecond, 200 * kMs);
  ASSERT_EQ(governor.decide(4 * kSecond).tier, 0);
  governor.refused(0, false, 4 * kSecond);
  EXPECT_EQ(governor.decide(5 * kSecond).tier, Governor::kNone);
  governor.start(6 * kSecond);
  ASSERT_EQ(governor.decide(6 * kSecond).tier, 0);
  governor.opened(0, 6 * kSecond);
  EXPECT_FALSE(governor.decide(6 * kSecond + kMs).full);
}

// Its closing comes some milliseconds after it was due, and what is recorded until then counts.
TEST(Governor, WhatIsRecordedStandsForItselfAtLeast) {
  GovernorOptions idle;
  idle.idle = true;
  Governor asked(idle, {Wishes{}}, 0);
  asked.record(kSecond, 200 * kMs);
  ASSERT_EQ(asked.decide(kSecond).tier, 0);
  asked.opened(0, kSecond);
  ASSERT_EQ(asked.decide(kSecond + 200 * kMs).tier, Governor::kNone);
  asked.closed(0, kSecond + 207 * kMs);
  EXPECT_EQ(asked.totals().recorded_ns, 207e6);
  EXPECT_EQ(asked.totals().governed_ns, 207e6);
  EXPECT_EQ(asked.take_alone_ns(), 207e6);

  Governor bound(GovernorOptions(), {Wishes{}}, 0);
  ASSERT_EQ(bound.decide(1).tier, 0);
  bound.opened(0, 1);
  bound.recorded(300'000, 0);
  ASSERT_EQ(bound.decide(kSecond + 1).tier, Governor::kNone);
  bound.closed(0, kSecond + 7 * kMs + 1);
  bound.interrupted(2 * kSecond + 1);
  EXPECT_EQ(bound.totals().recorded_ns, 1007e6);
  EXPECT_EQ(bound.totals().governed_ns, 1007e6);
  EXPECT_EQ(bound.totals().unseen_ns, 993e6);
}

TEST(Governor, ARefusedTierStaysShut) {
  Wishes eager;
  eager.first_cost_ns = 0;
  Governor governor(GovernorOptions(), {Wishes{}, eager}, 0);
  for (std::int64_t now = 1; now < 10 * kSecond;) {
    const Governor::Decision decision = governor.decide(now);
    if (decision.tier == 1) governor.refused(1, true, now);
    if (now > 5 * kSecond) {
      EXPECT_EQ(decision.tier, 0);
    }
    now = decision.ask_again_ns;
  }
}

TEST(Governor, WhereLaunchesAreRefusedItAsksAgainLater) {
  Governor governor({}, {Wishes{}}, 0);
  ASSERT_EQ(governor.decide(1).tier, 0);
  governor.refused(0, false, 1);
  const Governor::Decision later = governor.decide(2);
  EXPECT_EQ(later.tier, Governor::kNone);
  EXPECT_GT(later.ask_again_ns, 50 * kMs);
  const Governor::Decision again = governor.decide(later.ask_again_ns);
  EXPECT_EQ(again.tier, 0);
  EXPECT_TRUE(again.new_period);
}

TEST(Governor, IdleUntilStartedAndOnDemand) {
  GovernorOptions options;
  options.idle = true;
  Governor governor(options, {Wishes{}}, 0);
  EXPECT_EQ(governor.decide(kSecond).tier, Governor::kNone);
  EXPECT_EQ(governor.decide(kSecond).ask_again_ns, Governor::kNever);
  governor.record(2 * kSecond, 3 * kSecond);
  std::int64_t now = 2 * kSecond;
  for (; now < 5 * kSecond;) {
    const Governor::Decision decision = governor.decide(now);
    EXPECT_EQ(decision.tier, 0);
    EXPECT_TRUE(decision.full);
    governor.opened(0, now);
    now = decision.ask_again_ns;
  }
  EXPECT_EQ(now, 5 * kSecond);
  EXPECT_EQ(governor.decide(now).tier, Governor::kNone);
  governor.start(6 * kSecond);
  EXPECT_EQ(governor.decide(6 * kSecond).tier, 0);
  EXPECT_FALSE(governor.decide(6 * kSecond).full);
  governor.stop(7 * kSecond);
  EXPECT_EQ(governor.decide(7 * kSecond).tier, Governor::kNone);
}

TEST(Governor, FullWindowsComeOnceInEachCellAtAnotherPlace) {
  GovernorOptions options;
  options.full_window_ns = 2 * kSecond;
  options.full_cell_ns = 20 * kSecond;
  Governor governor(options, {Wishes{}}, 0);
  double full[10] = {};
  std::vector<std::int64_t> begins;
  bool was = false;
  for (std::int64_t now = 1; now < 200 * kSecond; now += 10 * kMs) {
    const Governor::Decision decision = governor.decide(now);
    if (decision.full && !was) begins.push_back(now % (20 * kSecond));
    if (decision.full) full[now / (20 * kSecond)] += 0.01;
    was = decision.full;
  }
  for (const double seconds : full) EXPECT_NEAR(seconds, 2, 0.05);
  ASSERT_EQ(begins.size(), 10u);
  EXPECT_NE(begins[0] / kSecond, begins[1] / kSecond);
}

// While CUPTI is another's no time is stood for, and afterwards a period begins anew.
TEST(Governor, TimeAsideIsNobodys) {
  Governor governor({}, {Wishes{}}, 0);
  ASSERT_EQ(governor.decide(1).tier, 0);
  governor.opened(0, 1);
  governor.closed(0, 100 * kMs);
  governor.interrupted(100 * kMs);
  EXPECT_NEAR(governor.take_weight().weight, 1, 1e-6);
  const Governor::Decision after = governor.decide(50 * kSecond);
  EXPECT_EQ(after.tier, 0);
  EXPECT_TRUE(after.new_period);
  governor.opened(0, 50 * kSecond);
  governor.interrupted(50 * kSecond + 50 * kMs);
  EXPECT_NEAR(governor.take_weight().weight, 1, 1e-6);
  EXPECT_NEAR(governor.totals().governed_ns, 150e6, 10);
}

}  // namespace
}  // namespace purlin::profile::capture
