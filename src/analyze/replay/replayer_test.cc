// SPDX-License-Identifier: Apache-2.0
#include "analyze/replay/replayer.h"

#include "analyze/replay/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace purlin::analyze {
namespace {

constexpr int kProgramSteps = 12;

struct Shape {  // of the program
  std::int64_t host = 6'000, a = 3'000, b = 5'000;
  int launches = 30;
  bool waits = false;
  std::uint32_t stream = 7;
};

Profile machine_program(const Shape& shape) {
  Machine m;
  for (int step = 0; step < kProgramSteps; ++step) {
    m.step(step);
    for (int i = 0; i < shape.launches; ++i) {
      m.work(shape.host);
      m.launch(i % 2 == 0 ? "a" : "b", i % 2 == 0 ? shape.a : shape.b, shape.stream);
    }
    if (shape.waits) m.wait();
  }
  m.builder.profile.source = "purlin";
  return m.finish();
}
const Shape kHostBound = {16'000, 3'000, 5'000, 30, false, 7};
const Shape kDeviceBound = {2'000, 40'000, 60'000, 30, true, 7};

std::uint32_t machine_row(const Profile& profile, std::string_view kernel) {
  for (std::uint32_t i = 0; i < profile.kernels.size(); ++i)
    if (profile.kernels[i].name == kernel) return i;
  return kNone;
}
Change scaled_by(const Profile& profile, std::string_view kernel, double factor) {
  Change change;
  change.edits.emplace_back(
      edit::Scale{Affected::of_row(machine_row(profile, kernel)), {factor, factor, factor}});
  return change;
}
Replayer replayer_of(const Profile& profile) { return {profile, analyze_timeline(profile), 0}; }
double share_saved(const Replayer& replayer, const Change& change) {
  return 1 - replayer.after(change).step_ns / replayer.before().step_ns;
}

TEST(Replay, IsExactWhenUntouched) {
  Random random(7);
  int built = 0;
  for (int i = 0; i < 400; ++i) {
    const Profile profile = random_timeline(random, i % 2 == 0 ? 1'000 : 1'000'000);
    ReplayWindow window;
    window.time = {0, 2'000'000};
    const Graph graph = build_graph(profile, window);
    if (graph.empty()) continue;
    ++built;
    const std::vector<double> times = replay(graph, recorded_weights(graph));
    ASSERT_EQ(times.size(), graph.recorded.size());
    for (std::size_t node = 1; node < times.size(); ++node)
      ASSERT_EQ(times[node], graph.recorded[node]) << "timeline " << i << " node " << node;
  }
  EXPECT_GT(built, 100);
}

TEST(Replay, IsExactForAProgram) {
  for (const Shape& shape : {kHostBound, kDeviceBound}) {
    const Profile profile = machine_program(shape);
    const Graph graph = build_graph(profile, choose_window(profile, analyze_timeline(profile)));
    EXPECT_EQ(replay(graph, recorded_weights(graph)), graph.recorded);
  }
}

// A plain profile knows when launches were made, and no wait of the host. Without the waits each
// host would seem to set the pace.
TEST(Replay, TimesOfLaunchesAloneAreNotReplayed) {
  TimelineBuilder builder;
  for (int i = 0; i < 40; ++i) {
    const std::uint32_t call = builder.call(CallKind::kLaunch, kQueuedCall, i * 20'000 + 1'000, 0);
    builder.kernel("k", i * 20'000 + 2'000, 10'000, call);
  }
  const Profile profile = builder.sorted();
  EXPECT_FALSE(replayer_of(profile).usable());
}

TEST(Replay, AWindowWithoutEventsHasNoGraph) {
  const Profile profile = machine_program(kHostBound);
  ReplayWindow window;
  window.time = {-2'000, -1'000};
  EXPECT_TRUE(build_graph(profile, window).empty());
}

TEST(Replay, TheFirstStepIsLeftOut) {
  const Profile profile = machine_program(kDeviceBound);
  const ReplayWindow window = choose_window(profile, analyze_timeline(profile));
  EXPECT_EQ(window.steps, kProgramSteps - 1);
  EXPECT_GT(window.time.begin, profile.timeline.activities.front().start_ns);
}

// The time between two traces of one program was not recorded.
TEST(Replay, TheTimeBetweenTwoTracesIsInNoWindow) {
  Profile profile = machine_program(kDeviceBound);
  const std::int64_t whole = choose_window(profile, analyze_timeline(profile)).time.length();
  const std::int64_t late = 100 * whole;
  Timeline& timeline = profile.timeline;
  const auto repeat = [late](auto& records) {
    auto later = records;
    for (auto& record : later) record.start_ns += late;
    records.insert(records.end(), later.begin(), later.end());
  };
  const auto calls = static_cast<std::uint32_t>(timeline.calls.size());
  const std::size_t first = timeline.activities.size();
  repeat(timeline.activities), repeat(timeline.calls), repeat(timeline.ranges);
  for (std::size_t i = first; i < timeline.activities.size(); ++i)
    timeline.activities[i].call += calls;
  const ReplayWindow window = choose_window(profile, analyze_timeline(profile));
  EXPECT_GE(window.steps, kProgramSteps - 1);
  EXPECT_LT(window.time.length(), 2 * whole);
}

// One long step happened once; three of them are what the program does.
TEST(Replay, StepsThatAreLongAgainAndAgainAreInTheWindow) {
  const auto steps_of = [](int long_ones) {
    TimelineBuilder builder;
    std::int64_t at = 0;
    for (int i = 0; i < 16; ++i) {
      const std::int64_t length = i % 4 == 2 && i / 4 < long_ones ? 50'000 : 10'000;
      builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(i), at, length);
      builder.kernel("gemm", at + length - 5'000, 4'000, builder.launch(at + length - 7'000, 500));
      at += length;
    }
    const Profile& profile = builder.sorted();
    return choose_window(profile, analyze_timeline(profile)).steps;
  };
  EXPECT_EQ(steps_of(4), 15);
  EXPECT_LT(steps_of(2), 15);
}

TEST(Replay, NoChangeSavesNothing) {
  const Profile profile = machine_program(kDeviceBound);
  const Replayer replayer = replayer_of(profile);
  EXPECT_EQ(share_saved(replayer, {}), 0);
  EXPECT_NEAR(share_saved(replayer, scaled_by(profile, "a", 1)), 0, 1e-12);
  const Interval3 nothing = replayer.saving(scaled_by(profile, "a", 1)).share;
  EXPECT_EQ(nothing.mid, 0);
  // No width is zero: what remains is uncertain too.
  const Interval3 half = replayer.saving(scaled_by(profile, "a", 0.5)).share;
  EXPECT_LT(half.low, half.mid - 0.005);
  EXPECT_GT(half.high, half.mid + 0.005);
}

TEST(Replay, KeepsAmdahlsLaw) {
  const Profile profile = machine_program(kDeviceBound);
  const Replayer replayer = replayer_of(profile);
  const double step = replayer.before().step_ns;
  const double most = 15 * 40'000 / step;  // all of kernel a
  for (const double factor : {0.0, 0.25, 0.5, 0.9}) {
    const double share = share_saved(replayer, scaled_by(profile, "a", factor));
    EXPECT_LE(share, most * (1 - factor) + 1e-9);
    EXPECT_NEAR(share, most * (1 - factor), 0.03 * most + 1e-9) << factor;
  }
  EXPECT_LE(replayer.saving(scaled_by(profile, "a", 0)).share.high, 1);
}

TEST(Replay, IsMonotone) {
  for (const Shape& shape : {kHostBound, kDeviceBound}) {
    const Profile profile = machine_program(shape);
    const Replayer replayer = replayer_of(profile);
    double before = -1e9;
    for (const double factor : {3.0, 1.5, 1.0, 0.7, 0.3, 0.0}) {
      const double share = share_saved(replayer, scaled_by(profile, "b", factor));
      EXPECT_GE(share, before);
      before = share;
    }
  }
}

TEST(Replay, FasterKernelsSaveNothingWhereTheHostSetsThePace) {
  const Profile profile = machine_program(kHostBound);
  const Replayer replayer = replayer_of(profile);
  for (const char* kernel : {"a", "b"}) {
    EXPECT_NEAR(share_saved(replayer, scaled_by(profile, kernel, 0.3)), 0, 0.01) << kernel;
    const Interval3 share = replayer.saving(scaled_by(profile, kernel, 0.3)).share;
    EXPECT_EQ(share.low, 0);
    EXPECT_LT(share.high, 0.02);
  }
}

// All times ten times as long: shares stay.
TEST(Replay, DoesNotDependOnTheScale) {
  Profile profile = machine_program({20'000, 30'000, 50'000, 30, true, 7});
  profile.source = "none";
  Profile longer = profile;
  const auto stretch = [](auto& records) {
    for (auto& record : records) record.start_ns *= 10, record.duration_ns *= 10;
  };
  stretch(longer.timeline.activities);
  stretch(longer.timeline.calls);
  stretch(longer.timeline.ranges);
  const auto share = [](const Profile& of) {
    const Graph graph = build_graph(of, choose_window(of, analyze_timeline(of)));
    const Applier applier(of, graph);
    const Weights base = recorded_weights(graph);
    const Applied after = applier.apply(scaled_by(of, "a", 0.5), Scenario::kMid, base);
    return span_of(graph, replay(graph, after.weights)) / span_of(graph, replay(graph, base));
  };
  EXPECT_NEAR(share(profile), share(longer), 0.01);
}

TEST(Replay, DoesNotDependOnTheNumbersOfStreams) {
  Shape renamed = kDeviceBound;
  renamed.stream = 123;
  const Profile one = machine_program(kDeviceBound), other = machine_program(renamed);
  EXPECT_EQ(share_saved(replayer_of(one), scaled_by(one, "a", 0.5)),
            share_saved(replayer_of(other), scaled_by(other, "a", 0.5)));
}

std::vector<std::uint32_t> launches_of(const Profile& profile, std::string_view kernel) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < profile.timeline.activities.size(); ++i)
    if (profile.timeline.activities[i].row == machine_row(profile, kernel)) out.push_back(i);
  return out;
}
// All work of each step.
std::vector<WorkGroup> groups_of(const Profile& profile, std::size_t each) {
  std::vector<WorkGroup> out;
  for (std::uint32_t i = 0; i < profile.timeline.activities.size(); ++i) {
    if (i % each == 0) out.emplace_back();
    out.back().push_back(i);
  }
  return out;
}

TEST(Replay, TheSameEditTwiceIsTheEditOnce) {
  const Profile profile = machine_program(kDeviceBound);
  const Replayer replayer = replayer_of(profile);
  const Edit edits[] = {
      edit::Remove{Affected::of(launches_of(profile, "a")), {1, 1, 1}},
      edit::Replace{groups_of(profile, 3), {9'000, 9'000, 9'000}},
      edit::LaunchAsGraph{groups_of(profile, 30)},
  };
  for (const Edit& one : edits) {
    Change once, twice;
    once.edits = {one};
    twice.edits = {one, one};
    EXPECT_EQ(replayer.after(once).step_ns, replayer.after(twice).step_ns) << one.index();
  }
}

TEST(Replay, RemovedWorkGoesWithItsHostTime) {
  const Profile profile =
      machine_program(kHostBound);  // (16 + 4) us of host for each of 30 launches
  const Replayer replayer = replayer_of(profile);
  Change change;
  change.edits.emplace_back(edit::Remove{Affected::of_row(machine_row(profile, "a")), {1, 1, 1}});
  EXPECT_NEAR(share_saved(replayer, change), 0.5, 0.03);
}

TEST(Replay, AReplacedGroupIsOneLaunch) {
  const Profile profile = machine_program(kDeviceBound);  // a b a b … in groups of two: 100 us each
  const Replayer replayer = replayer_of(profile);
  Change change;
  change.edits.emplace_back(edit::Replace{groups_of(profile, 2), {70'000, 50'000, 30'000}});
  EXPECT_NEAR(share_saved(replayer, change), 0.5, 0.02);
  const Interval3 share = replayer.saving(change).share;
  EXPECT_LE(share.low, 0.3);
  EXPECT_GE(share.high, 0.7);
  // A later change of the kernels that are gone does nothing.
  change.edits.emplace_back(edit::Scale{Affected::of_row(0), {0.1, 0.1, 0.1}});
  EXPECT_NEAR(share_saved(replayer, change), 0.5, 0.02);
}

TEST(Replay, AGraphLeavesItsLaunchAndItsGaps) {
  const Profile profile = machine_program(kHostBound);
  const Replayer replayer = replayer_of(profile);
  Change change;
  change.edits.emplace_back(edit::LaunchAsGraph{groups_of(profile, 30)});
  const double step = replayer.after(change).step_ns;
  const double expected = 15 * (3'000 + 5'000) + 29 * 500;  // the device now sets the pace
  EXPECT_NEAR(step, expected, 0.15 * expected);
  EXPECT_LT(replayer.saving(change).share.low, replayer.saving(change).share.mid);
}

TEST(Replay, AGraphOfOneKernelCanLose) {
  const Profile profile = machine_program(kHostBound);
  const Replayer replayer = replayer_of(profile);
  Change change;
  change.edits.emplace_back(edit::LaunchAsGraph{groups_of(profile, 1)});
  EXPECT_LT(replayer.saving(change).share.low, 0);
}

TEST(Replay, ARemovedWaitLetsTheHostRunAhead) {
  const auto run = [](bool waits) {
    Machine m;
    for (int step = 0; step < kProgramSteps; ++step) {
      m.step(step);
      for (int i = 0; i < 5; ++i) {
        m.work(5'000);
        m.launch("a", 40'000);
        if (waits) m.wait();
        m.work(20'000);
      }
    }
    return m.finish();
  };
  const Profile profile = run(true), without = run(false);
  const Replayer replayer = replayer_of(profile);
  edit::RemoveCalls edit;
  for (std::uint32_t i = 0; i < profile.timeline.calls.size(); ++i)
    if (profile.timeline.calls[i].kind == CallKind::kSync) edit.calls.push_back(i);
  Change change;
  change.edits.emplace_back(edit);
  const double expected = replayer_of(without).before().step_ns / replayer.before().step_ns;
  EXPECT_NEAR(1 - share_saved(replayer, change), expected, 0.05);
}

TEST(Replay, AnOverlapIsNoShorterThanWhatItMoves) {
  Machine m;
  for (int step = 0; step < kProgramSteps; ++step) {
    m.step(step);
    m.launch("a", 20'000);
    m.launch("copy", 180'000);
    m.wait();
  }
  const Profile& profile = m.finish();
  const Replayer replayer = replayer_of(profile);
  Change change;
  change.edits.emplace_back(
      edit::Overlap{Affected::of_row(machine_row(profile, "copy")), {0, 1, 1}});
  EXPECT_GE(replayer.after(change).step_ns, 180'000);
  EXPECT_LE(replayer.saving(change).share.low, 0);
}

TEST(Replay, TheRecorderIsTakenOffTheHost) {
  Profile profile = machine_program(kHostBound);
  profile.source = "kineto";
  const Replayer replayer = replayer_of(profile);
  const ReplayQuality& q = replayer.quality();
  EXPECT_LT(q.baseline_ns.low, q.baseline_ns.mid);
  EXPECT_LT(q.baseline_ns.mid, q.baseline_ns.high);
  EXPECT_LT(q.baseline_ns.high, q.recorded_ns);
  // A step known from outside of the recording narrows it.
  const double known = 0.9 * q.recorded_ns;
  const Replayer told(profile, analyze_timeline(profile), known);
  EXPECT_NEAR(told.quality().baseline_ns.mid / known, 1, 0.01);
  EXPECT_NEAR(told.quality().baseline_ns.low / known, 0.95, 0.01);
  EXPECT_NEAR(told.quality().baseline_ns.high / known, 1.05, 0.01);
}

// It slows ops and calls, not the work that loads input.
TEST(Replay, TheRecorderIsNotTakenOffTheLoadingOfInput) {
  Machine m;
  m.builder.profile.source = "kineto";
  for (int step = 0; step < kProgramSteps; ++step) {
    m.step(step);
    m.builder.range(RangeKind::kDataLoader, "next", m.host(1), 900'000);
    m.work(900'000);
    m.launch("a", 20'000);
    m.wait();
  }
  const Profile& profile = m.finish();
  const Replayer replayer = replayer_of(profile);
  EXPECT_NEAR(replayer.quality().baseline_ns.low / replayer.quality().recorded_ns, 1, 0.02);
}

// Its cost is that of the ops it records: a long op of the host, or Python between two, has none.
TEST(Replay, TheRecorderIsNotTakenOffLongOpsOfTheHost) {
  const auto share = [](int ops) {
    Machine m;
    m.builder.profile.source = "kineto";
    for (int step = 0; step < kProgramSteps; ++step) {
      m.step(step);
      for (int i = 0; i < ops; ++i)
        m.builder.op("aten::sort", m.host(1) + i * (900'000 / ops), 900'000 / ops);
      m.work(900'000);
      m.launch("a", 20'000);
      m.wait();
    }
    const Profile& profile = m.finish();
    const ReplayQuality q = replayer_of(profile).quality();
    return q.baseline_ns.mid / q.recorded_ns;
  };
  EXPECT_GT(share(1), 0.97);
  EXPECT_NEAR(share(200), 1 / 1.55, 0.05);
}

// Records are foreign: a name may be out of range.
TEST(Replay, AnUnknownNameDoesNoHarm) {
  Profile profile = machine_program(kHostBound);
  for (Range& range : profile.timeline.ranges) range.name = kNone;
  for (Call& call : profile.timeline.calls) call.name = kNone;
  EXPECT_TRUE(replayer_of(profile).usable());
}

TEST(Replay, TheCriticalPathNamesWhatSetsThePace) {
  const Profile device = machine_program(kDeviceBound), host = machine_program(kHostBound);
  {
    const Replayer replayer = replayer_of(device);
    const auto path = replayer.critical_path(replayer.before());
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(path[0].kind, EdgeKind::kRun);
    EXPECT_EQ(device.timeline.activities[path[0].activity].row, machine_row(device, "b"));
    double all = 0;
    for (const CriticalPart& part : path) all += part.ns;
    EXPECT_NEAR(all / replayer.before().step_ns, 1, 0.02);
  }
  const Replayer replayer = replayer_of(host);
  const auto path = replayer.critical_path(replayer.before());
  ASSERT_GE(path.size(), 2u);
  EXPECT_EQ(path[0].kind, EdgeKind::kHostTime);
  EXPECT_EQ(path[1].kind, EdgeKind::kCall);
}

TEST(Replay, TheReplayedTimelineIsAProfile) {
  const Profile profile = machine_program(kDeviceBound);
  const Replayer replayer = replayer_of(profile);
  const Profile same = replayer.timeline_of(replayer.before());
  const Profile faster = replayer.timeline_of(replayer.after(scaled_by(profile, "a", 0.5)));
  ASSERT_EQ(same.timeline.activities.size(), 11u * 30);
  ASSERT_EQ(faster.timeline.activities.size(), 11u * 30);
  EXPECT_EQ(faster.timeline.activities[0].duration_ns, 20'000);
  EXPECT_LT(end_of(faster.timeline.activities.back()), end_of(same.timeline.activities.back()));
  EXPECT_FALSE(faster.timeline.ranges.empty());
}

TEST(Replay, WithoutTheHostItIsNotUsable) {
  TimelineBuilder builder;
  builder.kernel("a", 0, 1'000);
  const Profile& profile = builder.sorted();
  EXPECT_FALSE(replayer_of(profile).usable());
}

}  // namespace
}  // namespace purlin::analyze
