// SPDX-License-Identifier: Apache-2.0
// The clock of ids in simulated programs: windows at random places in periods of random length,
// weighed by time and by ids.
#include "profile/capture/sampling/launch_counter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

namespace purlin::profile::capture {
namespace {

constexpr double kMilli = 1e6, kSec = 1e9;

struct CountedProgram {
  // ns from a launch at that time to the next, and of what kind it is; -1: captured into a graph.
  std::function<double(double)> gap_ns = [](double) { return 100e3; };
  std::function<int(double)> kind = [](double) { return 0; };
  double slower = 1;  // times as long while it is recorded
  std::uint32_t first_id = 1;
  double window_ns = 5 * kMilli, period_ns = 300 * kMilli;
  double length_ns = 60 * kSec;
  bool windows_end_early = false;
  double deferred = 0;  // the chance that a window's weight is left to the next one
};

struct CountOutcome {
  std::vector<double> truth = {0, 0}, by_ids = {0, 0}, by_time = {0, 0};
  int counted = 0, timed = 0;
  double ids_doubt = 0;
  double off() const { return (by_ids[0] + by_ids[1]) / (truth[0] + truth[1]) - 1; }
  double off_by_time() const { return (by_time[0] + by_time[1]) / (truth[0] + truth[1]) - 1; }
};

// After a start-up window of a second, as ActivityAggregator does it: a window is settled when the
// next one opens.
CountOutcome simulate_count(const CountedProgram& program, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  CountOutcome out;
  LaunchCounter counter;
  double now = 0, next = 0;
  std::uint32_t id = program.first_id;
  std::vector<double> seen = {0, 0},
                      kept = {0, 0};  // kept: of the window before, for all of the last
  // The program until then; it takes ids, and what is recorded is seen.
  const auto run = [&](double until, double weight, bool recorded) {
    for (; next < until; next += program.gap_ns(next) * (recorded ? program.slower : 1)) {
      ++id;
      if (program.kind(next) < 0) continue;
      const auto kind = static_cast<std::size_t>(program.kind(next));
      const auto at = static_cast<std::int64_t>(next);
      for (int node = 0; recorded && node < 2; ++node) counter.see(id - 1, weight, at);
      if (recorded && weight == 0) seen[kind] += 1;
      if (recorded && weight == 1) out.by_ids[kind] += 1, out.by_time[kind] += 1;
      out.truth[kind] += 1;
    }
    now = until;
  };
  run(kSec, 1, true);
  counter.start(static_cast<std::int64_t>(now), true);
  double stands = 0, open = 0, closed = now;
  int windows = 0;
  const auto settle = [&](bool last) {
    if (open <= 0 && !last) return;
    ++windows;
    if (program.deferred > 0 && !last && between(0, 1) < program.deferred) return;
    const double weight = open > 0 ? std::max(1.0, stands / open) : 1;
    if (open <= 0) stands = 0;
    const LaunchCounter::Weight by_ids = counter.settle(
        {weight, stands, static_cast<std::int64_t>(closed), static_cast<std::int64_t>(now), true,
         last, false, 0, std::exchange(windows, 0)});
    if (open > 0) (by_ids.counted ? out.counted : out.timed) += 1;
    const bool any = seen[0] + seen[1] > 0;
    if (any && (!last || kept[0] + kept[1] == 0)) kept = seen;
    const double left_out = counter.left_out() / std::max(1.0, kept[0] + kept[1]);
    for (std::size_t kind : {0u, 1u}) {
      out.by_ids[kind] += left_out * kept[kind];
      out.by_ids[kind] += by_ids.value * seen[kind];
      out.by_time[kind] += weight * std::exchange(seen[kind], 0);
    }
    stands = open = 0;
  };
  while (now < program.length_ns) {
    const double begin = now;
    const double end = std::min(program.length_ns, begin + program.period_ns * between(0.75, 1.25));
    const double window =
        program.windows_end_early ? program.window_ns * between(0.1, 1) : program.window_ns;
    const double at = begin + between(0, std::max(0.0, end - begin - window));
    run(at, 0, false);
    settle(false);
    run(std::min(end, at + window), 0, true);
    open += now - at;
    closed = now;
    run(end, 0, false);
    stands += end - begin;
  }
  counter.see_now(id - 1, static_cast<std::int64_t>(now));
  settle(true);
  out.ids_doubt = counter.ids_doubt();
  return out;
}

// With ten seeds for each chance that a window is deferred.
std::vector<CountOutcome> outcomes(CountedProgram program, std::initializer_list<double> deferred) {
  std::vector<CountOutcome> result;
  for (const double chance : deferred) {
    program.deferred = chance;
    for (std::uint64_t seed = 1; seed <= 10; ++seed)
      result.push_back(simulate_count(program, seed));
  }
  return result;
}

TEST(LaunchCounter, AProgramThatIsTwiceAsSlowWhileItIsRecorded) {
  CountedProgram program;
  program.slower = 2;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const CountOutcome out = simulate_count(program, seed);
    EXPECT_NEAR(out.off(), 0, 0.002);
    EXPECT_LT(out.off_by_time(), -0.4);
    EXPECT_EQ(out.timed, 0);
  }
}

// CUPTI returns the records of several windows at once. What was launched between them has no
// record, which does not show that launches were captured.
TEST(LaunchCounter, WindowsWhoseRecordsComeTogether) {
  CountedProgram program;
  program.slower = 2;
  program.window_ns = 10 * kMilli;
  program.period_ns = 30 * kMilli;
  program.length_ns = 20 * kSec;
  for (const CountOutcome& out : outcomes(program, {0.1, 0.5, 0.9})) {
    EXPECT_NEAR(out.off(), 0, 0.005);
    EXPECT_EQ(out.ids_doubt, 0);
  }
}

// It captures 200 launches in a millisecond, then replays what came of it for two, and so on.
// (Where a window sees no more than one or two such rounds, the captures at its ends are missed.)
TEST(LaunchCounter, LaunchesThatAreCapturedAreNone) {
  CountedProgram program;
  program.gap_ns = [](double at) { return std::fmod(at, 3 * kMilli) < 1 * kMilli ? 5e3 : 20e3; };
  program.kind = [](double at) { return std::fmod(at, 3 * kMilli) < 1 * kMilli ? -1 : 0; };
  program.length_ns = 20 * kSec;
  program.window_ns = 30 * kMilli;
  for (const CountOutcome& out : outcomes(program, {0, 0.5, 0.9})) {
    EXPECT_NEAR(out.off(), 0, 0.05);
    EXPECT_EQ(out.timed, 0);
    EXPECT_GT(out.ids_doubt, std::abs(out.off()) / 2);
    EXPECT_LT(out.ids_doubt, 0.2);
  }
}

// Rounds of 1.2 ms: twenty launches are captured, then ten made at once and waited for. A window of
// 5 ms sees four or five.
TEST(LaunchCounter, CapturesAtTheEndsOfAWindowAreNotMissed) {
  CountedProgram program;
  const auto phase = [](double at) { return std::fmod(at, 1.2 * kMilli); };
  program.gap_ns = [=](double at) {
    const double in = phase(at);
    return in < 0.1 * kMilli ? 5e3 : in < 0.145 * kMilli ? 5e3 : 1.2 * kMilli - in + 1;
  };
  program.kind = [=](double at) { return phase(at) < 0.1 * kMilli ? -1 : 0; };
  program.length_ns = 20 * kSec;
  double off = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) off += simulate_count(program, seed).off() / 20;
  EXPECT_NEAR(off, 0, 0.03);
}

TEST(LaunchCounter, FewReplaysInAWindowAndFewWindows) {
  CountedProgram program;
  program.gap_ns = [](double) { return 2.4e6; };
  program.slower = 1.5;
  program.period_ns = 4 * kSec;
  program.length_ns = 13 * kSec;
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    EXPECT_NEAR(simulate_count(program, seed).off(), 0, 0.01) << seed;
  program.length_ns = 2 * kSec;  // one window
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    EXPECT_NEAR(simulate_count(program, seed).off(), 0, 0.01) << seed;
}

TEST(LaunchCounter, IdsComeRound) {
  CountedProgram program;
  program.first_id = 0xffffff00;
  EXPECT_NEAR(simulate_count(program, 1).off(), 0, 0.002);
  program.first_id = 0x7fffff00;
  EXPECT_NEAR(simulate_count(program, 1).off(), 0, 0.002);
}

TEST(LaunchCounter, WindowsOfAnyLength) {
  CountedProgram program;
  program.slower = 1.3;
  program.windows_end_early = true;
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    EXPECT_NEAR(simulate_count(program, seed).off(), 0, 0.002);
}

// A step of 40 ms launches 20 small kernels a ms at first and then a large one every ms: windows
// of 5 ms see either.
TEST(LaunchCounter, WhatAWindowSeesDoesNotWeighIt) {
  CountedProgram program;
  const auto burst = [](double now) { return std::fmod(now, 40e6) < 10e6; };
  program.gap_ns = [=](double now) { return burst(now) ? 50e3 : 1e6; };
  program.kind = [=](double now) { return burst(now) ? 1 : 0; };
  program.slower = 1.5;
  double share = 0, truth = 0;
  constexpr int kRuns = 100;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    const CountOutcome out = simulate_count(program, seed);
    EXPECT_NEAR(out.off(), 0, 0.04) << seed;
    share += out.by_ids[0] / (out.by_ids[0] + out.by_ids[1]) / kRuns;
    truth += out.truth[0] / (out.truth[0] + out.truth[1]) / kRuns;
  }
  EXPECT_NEAR(share, truth, 0.04);
}

TEST(LaunchCounter, APauseIsNoLaunches) {
  CountedProgram program;  // at work for half of each ten seconds
  program.gap_ns = [](double now) {
    return std::fmod(now, 10e9) < 5e9 ? 100e3 : 10e9 - std::fmod(now, 10e9);
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const CountOutcome out = simulate_count(program, seed);
    EXPECT_NEAR(out.off(), 0, 0.02) << seed;
  }
}

// As with 64 threads that each have a separate buffer: half of a window's records are reported
// after it was weighed, and get its weight. At every fourth window no record is missing.
TEST(LaunchCounter, WhatIsToldOfLateIsNotGivenOutTwice) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::uint32_t> place(0, 3500);
  LaunchCounter counter;
  for (std::uint32_t id = 0; id < 1000; ++id) counter.see(id, 1, 0);
  counter.start(0, true);
  double given = 1000;
  std::uint32_t id = 1000;
  std::vector<std::pair<std::uint32_t, double>> late;
  for (std::int64_t round = 0; round < 200; ++round) {
    double seen = 0;
    const bool complete = round % 4 == 3;
    const std::uint32_t begin = place(random);  // 1,500 launches of every 5,000 in 20 ms
    std::vector<std::uint32_t> later;
    for (std::uint32_t i = begin; i < begin + 1500; ++i) {
      if (complete || random() % 2 == 0) {
        counter.see(id + i, 0, 0);
        seen += 1;
      } else {
        later.push_back(id + i);
      }
    }
    if (complete) {
      for (const auto& [each, weight] : late) {
        counter.see(each, weight, 0);
        counter.see(each, weight, 0);  // two nodes' records
        given += weight;
      }
      late.clear();
    }
    id += 5000;
    const LaunchCounter::Weight weight =
        counter.settle({10.0 / 3, 20e6, round * 20'000'000 + (begin + 1500) * 4000,
                        (round + 1) * 20'000'000, complete});
    given += seen * weight.value;
    for (const std::uint32_t each : later) late.emplace_back(each, weight.value);
  }
  EXPECT_NEAR(given / id, 1, 0.01);
}

// The program captures 20 launches for every 10 that it makes. The records of every second window
// arrive late. The other windows still show how many ids a launch has. The error of earlier
// weights is not corrected twice.
TEST(LaunchCounter, CapturesAreKnownOfThoughRecordsComeLate) {
  for (const auto& [late_first, calls] :
       {std::pair(0u, false), std::pair(1u, false), std::pair(0u, true), std::pair(1u, true)}) {
    LaunchCounter counter;
    counter.see(0, 1, 0);
    counter.start(0, true);
    double given = 1, launches = 1;
    std::uint32_t id = 1;
    std::vector<std::pair<std::uint32_t, double>> late;
    for (std::int64_t second = 0; second < 12; ++second) {
      const bool complete = second % 2 == late_first;
      const std::int64_t begin = second * 1'000'000'000;
      for (const auto& [each, weight] : late) counter.see(each, weight, 0), given += weight;
      late.clear();
      double seen = 0;
      std::vector<std::uint32_t> later;
      for (std::uint32_t round = 0; round < 500; ++round, id += 30)
        for (std::uint32_t i = 20; i < 30; ++i, launches += 1) {
          const auto at = begin + std::int64_t{round} * 2'000'000 + i * 10'000;
          if (round < 200 || round >= 220) continue;
          if (complete || round % 2 == 0)
            counter.see(id + i, 0, at), seen += 1;
          else
            later.push_back(id + i);
        }
      const LaunchCounter::Weight weight = counter.settle(
          {25, kSec, begin + 440'000'000, begin + 1'000'000'000, complete, false, calls});
      given += seen * weight.value;
      for (const std::uint32_t each : later) late.emplace_back(each, weight.value);
    }
    for (const auto& [each, weight] : late) counter.see(each, weight, 0), given += weight;
    counter.see_now(id - 1, 12'000'000'000);
    counter.settle({1, 0, 11'440'000'000, 12'000'000'000, true, true, calls});
    EXPECT_NEAR((given + counter.left_out()) / launches, 1, 0.03) << late_first << calls;
  }
}

// As of a busy program on an overloaded machine: CUPTI holds records of every window when it is
// settled, and these windows were open for twice as long as was known.
TEST(LaunchCounter, WindowsWithMissingRecordsRepresentNoMoreThanIdsPassed) {
  for (const std::int64_t late : {0, 1, 3}) {  // of ten records
    LaunchCounter counter;
    counter.see(0, 1, 0);
    counter.start(0, true);
    double given = 1;
    std::uint32_t id = 1;
    std::vector<std::pair<std::uint32_t, double>> missing;
    for (std::int64_t round = 0; round < 200; ++round, id += 1000) {
      for (const auto& [each, weight] : missing) counter.see(each, weight, 0), given += weight;
      missing.clear();
      double seen = 0;
      for (std::uint32_t i = 300; i < 700; ++i) {  // 400 of 1,000, and taken for 200
        if (i % 10 >= late)
          counter.see(id + i, 0, 0), seen += 1;
        else
          missing.emplace_back(id + i, 0);
      }
      const std::int64_t begin = round * 20'000'000;
      const LaunchCounter::Weight weight =
          counter.settle({5, 20e6, begin + 14'000'000, begin + 20'000'000, false});
      given += seen * weight.value;
      for (auto& [each, value] : missing) value = weight.value;
    }
    counter.see_now(id - 1, 4'000'000'000);
    counter.settle({1, 0, 3'994'000'000, 4'000'000'000, true, true});
    // The first ones tell whether IDs move.
    EXPECT_NEAR((given + counter.left_out()) / id, 1, 0.03) << late;
  }
}

// The first windows are weighed before anything tells that IDs count. The last ID tells how much of
// what they represent was not launched.
TEST(LaunchCounter, TheEndTellsWhatWindowsRepresentTooMuch) {
  LaunchCounter counter;
  counter.see(0, 1, 0);
  counter.start(0, true);
  std::uint32_t id = 1;
  double given = 1;
  for (std::int64_t round = 0; round < 2; ++round, id += 1000) {
    for (std::uint32_t i = 300; i < 700; ++i) counter.see(id + i, 0, 0);
    const std::int64_t begin = round * 20'000'000;
    given +=
        400 * counter.settle({5, 20e6, begin + 14'000'000, begin + 20'000'000, round > 0}).value;
  }
  EXPECT_EQ(counter.beyond(), 0);
  counter.see_now(id - 1, 40'000'000);
  counter.settle({1, 0, 34'000'000, 40'000'000, true, true});
  EXPECT_GT(given, id);
  EXPECT_NEAR(counter.beyond(), 1 - id / given, 0.01);
  EXPECT_EQ(counter.left_out(), 0);
}

// IDs that count records only do not bound weights, though some records are missing each time.
TEST(LaunchCounter, MissingRecordsAreNoSignThatIdsMove) {
  for (const double by_time : {2.0, 5.0}) {
    LaunchCounter counter;
    counter.see(0, 1, 0);
    counter.start(0, true);
    std::vector<std::uint32_t> missing;
    std::uint32_t id = 1;
    for (std::int64_t round = 0; round < 50; ++round) {
      for (const std::uint32_t each : missing) counter.see(each, by_time, 0);
      missing.clear();
      for (std::uint32_t i = 0; i < 100; ++i, ++id) {
        if (i % 3 == 0)
          counter.see(id, 0, 0);
        else
          missing.push_back(id);
      }
      const std::int64_t begin = round * 20'000'000;
      const LaunchCounter::Weight weight =
          counter.settle({by_time, 20e6, begin + 14'000'000, begin + 20'000'000, false});
      EXPECT_EQ(weight.value, by_time) << round;
      EXPECT_FALSE(weight.counted);
    }
  }
}

// Of a thread that was kept waiting between its launch's number and its record.
TEST(LaunchCounter, AStrayIdDoesNotLengthenAWindow) {
  LaunchCounter counter;
  counter.see(0, 1, 0);
  counter.start(0, true);
  double given = 0;
  std::uint32_t id = 1;
  for (std::int64_t second = 0; second < 40; ++second) {
    counter.see(id + 10, 0, 0);
    for (std::uint32_t i = 500; i < 600; ++i) counter.see(id + i, 0, 0);
    id += 1000;
    given += 101 * counter
                       .settle({10, kSec, second * 1'000'000'000 + 600'000'000,
                                (second + 1) * 1'000'000'000})
                       .value;
  }
  EXPECT_NEAR(given / id, 1, 0.03);
}

// ---- where ids do not tell ----

class LaunchCounterAlone : public testing::Test {
 protected:
  // A window of ten ms of each second, of launches with these ids; its weight.
  LaunchCounter::Weight window(std::int64_t second, std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t id = first; id != last + 1; ++id) counter_.see(id, 0, 0);
    return counter_.settle(
        {100, kSec, second * 1'000'000'000 + 500'000'000, second * 1'000'000'000 + 1'000'000'000});
  }
  static void expect_time(const LaunchCounter::Weight& weight) {
    EXPECT_FALSE(weight.counted);
    EXPECT_EQ(weight.value, 100);
  }
  LaunchCounter counter_;
};

TEST_F(LaunchCounterAlone, BeforeItStartsTimeDecides) {
  expect_time(window(0, 1, 10));
  expect_time(window(1, 1001, 1010));
  counter_.start(2'000'000'000, false);  // where ids are is not known
  expect_time(window(2, 5001, 5010));
  EXPECT_TRUE(window(3, 6001, 6010).counted);
  counter_.stop();
  expect_time(window(4, 7001, 7010));
}

TEST_F(LaunchCounterAlone, IdsThatStandStillWhileNothingIsRecorded) {
  counter_.start(0, true);
  for (std::uint32_t second = 0; second < 20; ++second)
    expect_time(window(second, 10 * second + 1, 10 * second + 10));
}

TEST_F(LaunchCounterAlone, IdsThatGoBackBeginAnew) {
  counter_.start(0, true);
  window(0, 501'001, 501'010);
  EXPECT_NEAR(window(1, 502'001, 502'010).value, 75, 25);  // 100, less what is held back
  expect_time(window(2, 101, 110));                        // another client has ended CUPTI, say
  const LaunchCounter::Weight again = window(3, 1101, 1110);
  EXPECT_TRUE(again.counted);
  EXPECT_NEAR(again.value, 100, 25);
}

// A thread that was kept waiting for long.
TEST_F(LaunchCounterAlone, AStragglerIsNoNewBeginning) {
  counter_.start(0, true);
  window(0, 501, 510);
  window(1, 1501, 1510);
  for (std::uint32_t id = 2001; id <= 2100; ++id) counter_.see(id, 1, 0);
  counter_.see(700, 0, 0);
  counter_.settle({1, 0, 1'500'000'000, 2'000'000'000});
  const LaunchCounter::Weight weight = window(2, 2501, 2510);
  EXPECT_TRUE(weight.counted);
  EXPECT_NEAR(weight.value, 95, 20);
}

// A window that was hardly open represents no time.
TEST_F(LaunchCounterAlone, AWindowThatStandsForNoTimeTeachesNothing) {
  counter_.start(0, true);
  window(0, 501, 510);
  window(1, 1501, 1510);
  for (std::uint32_t id = 2001; id <= 2039; id += 2) counter_.see(id, 0, 0);
  const LaunchCounter::Weight none = counter_.settle({1, 0, 1'600'000'000, 2'000'000'000});
  EXPECT_EQ(none.value, 1);
  const LaunchCounter::Weight weight = window(2, 2501, 2510);
  EXPECT_TRUE(weight.counted);
  EXPECT_NEAR(weight.value, 100, 20);
}

TEST_F(LaunchCounterAlone, MoreThanAProgramCanLaunchIsNotBelieved) {
  counter_.see(1, 1, 0);
  counter_.start(0, true);
  EXPECT_TRUE(window(0, 501, 510).counted);
  expect_time(window(1, 200'000'001, 200'000'010));
  EXPECT_TRUE(window(2, 200'001'001, 200'001'010).counted);
}

TEST_F(LaunchCounterAlone, WhatStandsForItselfIsNotWeighedAgain) {
  counter_.see(1, 1, 0);
  counter_.start(0, true);
  EXPECT_TRUE(window(0, 501, 510).counted);  // the first half second
  double given = 0, launched = 510;
  std::uint32_t id = 511;
  for (std::int64_t second = 1; second < 40; ++second) {
    // 500 launches unseen, 400 in full, 90 unseen, a window of 10.
    id += 500;
    for (int i = 0; i < 400; ++i) counter_.see(id++, 1, 0);
    id += 90;
    for (int i = 0; i < 10; ++i) counter_.see(id++, 0, 0);
    const LaunchCounter::Weight weight =
        counter_.settle({60, 0.6 * kSec, second * 1'000'000'000 + 500'000'000,
                         second * 1'000'000'000 + 1'000'000'000, true, false, false, 0.4 * kSec});
    EXPECT_TRUE(weight.counted);
    given += 400 + 10 * weight.value;
    launched += 1000;
  }
  EXPECT_NEAR(given / (launched - 510), 1, 0.05);
}

// Of a window of which half has not run yet as it is weighed, the rest comes with its weight.
TEST_F(LaunchCounterAlone, WhatRunsLongAfterItWasLaunchedIsNotLost) {
  counter_.see(0, 1, 0);
  counter_.start(0, true);
  double given = 0, weight = 0;
  std::uint32_t id = 1;
  std::vector<std::uint32_t> late;
  constexpr int kSeconds = 60;
  for (std::int64_t second = 0; second < kSeconds; ++second) {
    // A hundred launches of every thousand; sometimes right after those of before.
    const std::uint32_t before = second % 3 == 1 ? 0 : second % 3 == 2 ? 1800 : 900;
    for (const std::uint32_t each : late) {
      counter_.see(each, weight, 0);
      given += weight;
    }
    late.clear();
    for (std::uint32_t i = 0; i < 100; ++i) {
      if (i < 50)
        counter_.see(id + before + i, 0, 0);
      else
        late.push_back(id + before + i);
    }
    id += before + 100;
    const std::int64_t begin = second * 1'000'000'000;
    const LaunchCounter::Weight settled =
        counter_.settle({10, kSec, begin + 500'000'000, begin + 1'000'000'000});
    EXPECT_EQ(settled.counted, second > 0 || settled.counted);
    weight = settled.value;
    given += 50 * weight;
  }
  EXPECT_NEAR(given / id, 1, 0.05);
}

TEST_F(LaunchCounterAlone, AnIdOfTheEndTellsOfTheRest) {
  counter_.start(0, true);
  window(0, 501, 510);
  for (std::uint32_t id = 1501; id <= 1510; ++id) counter_.see(id, 0, 0);
  counter_.see_now(1600, 1'900'000'000);  // hardly any since
  const LaunchCounter::Weight weight =
      counter_.settle({100, kSec, 1'500'000'000, 2'000'000'000, true, true});
  EXPECT_TRUE(weight.counted);
  EXPECT_NEAR(weight.value, 70, 15);
}

// Seconds of very different numbers of launches, and an end at any of them: what was given out too
// much could not be taken back.
TEST(LaunchCounter, AnyEndAddsUpToWhatThereWas) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::uint32_t> count(600, 1400);
  for (std::int64_t seconds = 6; seconds < 60; ++seconds) {
    LaunchCounter counter;
    counter.see(0, 1, 0);
    counter.start(0, true);
    double given = 1;
    std::uint32_t id = 1;
    for (std::int64_t second = 0; second < seconds; ++second) {
      const std::uint32_t launches = count(random);
      for (std::uint32_t i = launches / 2; i < launches / 2 + 20; ++i) counter.see(id + i, 0, 0);
      id += launches;
      const std::int64_t begin = second * 1'000'000'000;
      given += 20 * counter.settle({50, kSec, begin + 500'000'000, begin + 1'000'000'000}).value;
    }
    const std::int64_t end = seconds * 1'000'000'000 + 1'000'000;
    counter.see_now(id - 1, end);
    counter.settle({1, 0, end - 500'000'000, end, true, true});
    EXPECT_NEAR((given + counter.left_out()) / id, 1, 0.003) << seconds;
  }
}

// Where nothing tells how far ids went, what was held back is given out at the end, and no more.
TEST(LaunchCounter, AnEndWithoutAnIdGivesOutWhatWasHeldBack) {
  LaunchCounter counter;
  counter.see(0, 1, 0);
  counter.start(0, true);
  double given = 1;
  std::uint32_t id = 1;
  constexpr std::uint32_t kLaunches = 1000, kSeconds = 8;
  for (std::int64_t second = 0; second < kSeconds; ++second, id += kLaunches) {
    for (std::uint32_t i = 490; i < 510; ++i) counter.see(id + i, 0, 0);
    const std::int64_t begin = second * 1'000'000'000;
    given += 20 * counter.settle({50, kSec, begin + 500'000'000, begin + 1'000'000'000}).value;
  }
  constexpr std::int64_t kEnd = std::int64_t{kSeconds} * 1'000'000'000 + 1'000'000;
  counter.settle({1, 0, kEnd - 501'000'000, kEnd, true, true});
  EXPECT_LT(given / id, 0.96);
  EXPECT_NEAR((given + counter.left_out()) / id, 1, 0.003);
  counter.settle({1, 0, kEnd - 501'000'000, kEnd + 9'000'000'000, true, true});
  EXPECT_LE(counter.left_out(), 0.51 * kLaunches);
}

// A window may be settled so late that more time has passed since then than it represents. The
// excess does not count as represented.
TEST_F(LaunchCounterAlone, AWindowByTimeGivesOutNoMoreThanItStandsFor) {
  counter_.see(1000, 1, 0);
  counter_.start(0, true);
  for (std::uint32_t id = 1001; id <= 1010; ++id)
    counter_.see(id, 0, 0);  // right after the start-up window
  double given = 10 * counter_.settle({10, 0.2 * kSec, 110'000'000, 600'000'000}).value;
  EXPECT_EQ(given, 100);
  counter_.see_now(1999, 1'000'000'000);
  counter_.settle({1, 0, 110'000'000, 1'000'000'000, true, true});
  EXPECT_NEAR(given + counter_.left_out(), 999, 10);
}

TEST_F(LaunchCounterAlone, LaunchesThatNoWindowStandsForAreKnownOfAtTheEnd) {
  counter_.see(100, 1, 0);
  counter_.start(0, true);
  counter_.see(101, 1, 0);  // while it was cycled
  counter_.see_now(5101, 900'000'000);
  counter_.settle({1, 0, 0, 1'000'000'000, true, true});
  EXPECT_EQ(counter_.left_out(), 5000);
}

TEST_F(LaunchCounterAlone, AWindowOfNothingIsNotForgotten) {
  counter_.start(0, true);
  double given = 0;
  for (std::uint32_t second = 0; second < 40; ++second) {
    const std::uint32_t first = 1000 * second + 501;
    if (second % 2 == 0)
      given += 20 * window(second, first, first + 19).value;
    else
      counter_.settle({100, kSec, second * 1'000'000'000ll + 500'000'000,
                       second * 1'000'000'000ll + 1'000'000'000});
  }
  EXPECT_NEAR(given / 40e3, 1, 0.05);
}

}  // namespace
}  // namespace purlin::profile::capture
