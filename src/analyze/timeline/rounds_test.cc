// SPDX-License-Identifier: Apache-2.0
// Steps of programs that mark none, start-up, and one-off gaps.
#include "analyze/timeline/rounds.h"

#include "analyze/timeline/testing.h"
#include "analyze/timeline/timeline.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// A training program: a start-up of `start_up` random kernels, then steps of forward layers,
// backward layers and an optimizer. `odd` adds a copy to every third step.
struct Training {
  int layers = 12, steps = 10, start_up = 100;
  bool odd = false;
  std::int64_t step_idle = 2'000, start_idle = 500'000'000;
};
constexpr std::int64_t kLayerKernel = 1'000;

TimelineBuilder train(const Training& of) {
  TimelineBuilder builder;
  std::int64_t at = 0;
  const auto run = [&](const std::string& kernel, std::int64_t ns) {
    builder.kernel(kernel, at, ns);
    at += ns + 10;
  };
  for (int i = 0; i < of.start_up; ++i) {
    run("init" + std::to_string(i % 7), 100);
    if (i == of.start_up / 2) at += of.start_idle;
  }
  at += of.start_idle;
  for (int step = 0; step < of.steps; ++step) {
    if (of.odd && step % 3 == 0) {
      builder.copy("h2d", at, 50);
      at += 60;
    }
    run("embedding", 500);
    for (int layer = 0; layer < of.layers; ++layer)
      for (const char* kernel : {"norm", "gemm", "softmax", "gelu"}) run(kernel, kLayerKernel);
    run("loss", 300);
    for (int layer = 0; layer < of.layers; ++layer)
      for (const char* kernel : {"gelu_backward", "gemm", "gemm", "norm_backward"})
        run(kernel, kLayerKernel);
    for (int part = 0; part < 4; ++part) run("adam", 800);
    at += of.step_idle;
  }
  return builder;
}

TEST(Rounds, AreStepsAndNotLayers) {
  for (const int layers : {2, 12, 96}) {
    TimelineBuilder builder = train({.layers = layers});
    const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
    EXPECT_EQ(analysis.steps_from, kGuessedSteps);
    EXPECT_EQ(analysis.steps.size(), 10u) << layers;
    EXPECT_EQ(analysis.guessed_launches, 8 * layers + 6);
    EXPECT_GT(analysis.guessed_share, 0.9);
    EXPECT_EQ(analysis.steps[3].kernel_ns, 8 * layers * kLayerKernel + 800 + 4 * 800);
  }
}

// Wall time plays no part: 1 s of start-up before 1 ms of steps.
TEST(Rounds, AreFoundBehindALongStartUp) {
  TimelineBuilder builder = train({});
  const Profile profile = builder.sorted();
  const TimelineAnalysis analysis = analyze_timeline(profile);
  ASSERT_EQ(analysis.phases.size(), 2u);
  const Phase& start_up = analysis.phases[0];
  EXPECT_EQ(start_up.kind, PhaseKind::kStartUp);
  EXPECT_EQ(start_up.kernels, 100);
  EXPECT_EQ(start_up.kernel_ns, 100 * 100);
  EXPECT_GT(start_up.span_ns, 1'000'000'000);
  EXPECT_EQ(analysis.phases[1].kind, PhaseKind::kSteadyState);
  EXPECT_EQ(analysis.phases[1].steps, 10);
  // The figures are of the steady state, which is busy.
  ASSERT_EQ(analysis.devices.size(), 1u);
  EXPECT_LT(analysis.devices[0].idle_total_ns(), analysis.devices[0].span_ns / 10);
  EXPECT_EQ(analysis.devices[0].begin_ns, analysis.phases[1].begin_ns);
  const TimelineAnalysis all = analyze_timeline(profile, PhaseChoice::kAll);
  EXPECT_GT(all.devices[0].idle_total_ns(), 1'000'000'000);
}

TEST(Rounds, StepsMayDifferInAFewLaunches) {
  TimelineBuilder builder = train({.odd = true});
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.steps_from, kGuessedSteps);
  EXPECT_GE(analysis.steps.size(), 9u);
  EXPECT_LE(analysis.steps.size(), 10u);
}

// An evaluation every fifth step makes that step longer. It does not end the steady state.
TEST(Rounds, GoOnAfterAnEvaluation) {
  TimelineBuilder builder;
  std::int64_t at = 0;
  for (int step = 0; step < 20; ++step) {
    for (int k = 0; k < 30; ++k, at += 100) builder.kernel("kernel" + std::to_string(k), at, 90);
    if (step % 5 == 4)
      for (int k = 0; k < 40; ++k, at += 100) builder.kernel("evaluate", at, 20);
  }
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.steps_from, kGuessedSteps);
  EXPECT_EQ(analysis.steps.size(), 20u);
}

// One decode step of a model as one CUDA graph has many layers, and is one step.
TEST(Rounds, AreNotWithinAGraphLaunch) {
  TimelineBuilder builder;
  const std::uint32_t launch = builder.call(CallKind::kGraphLaunch, "cudaGraphLaunch", 0, 10);
  for (int layer = 0; layer < 24; ++layer)
    for (int k = 0; k < 17; ++k)
      builder.kernel("kernel" + std::to_string(k), 100 + layer * 2'000 + k * 100, 90, launch);
  builder.kernel("argmax", 60'000, 10);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_TRUE(analysis.steps.empty()) << analysis.steps.size();
  EXPECT_TRUE(analysis.phases.empty());
}

TEST(Rounds, OfGraphLaunchesAreSteps) {
  TimelineBuilder builder;
  for (int step = 0; step < 8; ++step) {
    const std::int64_t at = step * 100'000;
    const std::uint32_t launch = builder.call(CallKind::kGraphLaunch, "cudaGraphLaunch", at, 10);
    for (int k = 0; k < 40; ++k)
      builder.kernel("kernel" + std::to_string(k % 10), at + 100 + k * 1'000, 900, launch);
    builder.kernel("sample", at + 50'000, 100);
  }
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.steps.size(), 8u);
  EXPECT_EQ(analysis.guessed_launches, 2);
}

// Pages of unified memory move while a kernel runs: no call launched that.
TEST(Rounds, MigrationsAreNoLaunches) {
  TimelineBuilder builder;
  for (int i = 0; i < 30; ++i) {
    builder.kernel("stencil", i * 1'000, 900, builder.launch(i * 1'000 - 500, 10));
    for (int page = 0; page < 10; ++page) builder.copy("migration h2d", i * 1'000 + page * 80, 60);
  }
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_TRUE(analysis.steps.empty());
  EXPECT_EQ(Json::array_of(analysis.limits).dump().find("no known launch"), std::string::npos);
}

TEST(Rounds, OneKernelAgainAndAgainHasNone) {
  TimelineBuilder builder;
  for (int i = 0; i < 100; ++i) builder.kernel("gemm", i * 100, 90);
  EXPECT_TRUE(analyze_timeline(builder.sorted()).steps.empty());
}

// Ranges that cover a part of their iteration mark where one ends.
TEST(Steps, BetweenMarksOfTheOptimizer) {
  TimelineBuilder builder;
  for (int i = 0; i < 6; ++i) {
    const std::int64_t at = i * 21'000;
    for (int k = 0; k < 10; ++k)
      builder.kernel("gemm", at + 1'000 + k * 1'800, 1'700, builder.launch(at + k * 1'500, 10));
    builder.range(RangeKind::kUser, "Optimizer.step#AdamW.step", at + 17'000, 2'600);
    builder.kernel("adam", at + 19'100, 500, builder.launch(at + 17'500, 10));
  }
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.steps_from, "marks");
  ASSERT_EQ(analysis.steps.size(), 5u);
  for (const StepTime& step : analysis.steps) EXPECT_EQ(step.duration_ns, 21'000);
  EXPECT_EQ(analysis.steps[2].kernel_ns, 17'000 + 500);
}

// An evaluation takes most of the time, but the steps are whole ranges.
TEST(Steps, AroundALongEvaluationAreNoMarks) {
  TimelineBuilder builder;
  for (int i = 0; i < 8; ++i) {
    const std::int64_t at = i * 1'000 + (i < 4 ? 0 : 50'000);
    builder.range(RangeKind::kUser, "train_step", at, 900);
    builder.kernel("gemm", at + 100, 700, builder.launch(at + 10, 5));
  }
  for (int i = 0; i < 60; ++i)
    builder.kernel("eval", 4'000 + i * 800, 700, builder.launch(4'000 + i * 800 - 50, 5));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.steps_from, "user ranges");
  ASSERT_EQ(analysis.steps.size(), 8u);
  EXPECT_EQ(analysis.mean_step.kernel_ns, 700);
}

// Two models, one after the other, each with an optimizer of the same class: a step has both.
TEST(Steps, OfTwoOptimizersThatTakeTurns) {
  for (const bool turns : {true, false}) {
    TimelineBuilder builder;
    for (int i = 0; i < 12; ++i) {
      const std::int64_t at = i * 21'000 + (i % 2) * 100;
      const int launches = turns && i % 2 == 1 ? 4 : 10;
      for (int k = 0; k < launches; ++k)
        builder.kernel("gemm", at + 3'000 + k * 1'400, 1'300,
                       builder.launch(at + 2'000 + k * 1'400, 10));
      builder.range(RangeKind::kUser, "Optimizer.step#Adam.step", at + 17'000, 2'600);
      builder.kernel("adam", at + 19'100, 500, builder.launch(at + 17'500, 10));
    }
    const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
    EXPECT_EQ(analysis.steps_from, "marks");
    ASSERT_EQ(analysis.steps.size(), turns ? 5u : 11u);
    // The host pauses longer before the first of the two.
    EXPECT_EQ(analysis.steps[0].kernel_ns, turns ? 14 * 1'300 + 2 * 500 : 10 * 1'300 + 500);
  }
}

TEST(Steps, ThatOverlapByARoundedClockAreAllKept) {
  TimelineBuilder builder;
  for (int i = 0; i < 5; ++i) {
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(i), i * 1'000, 1'001);
    builder.kernel("gemm", i * 1'000 + 100, 50, builder.launch(i * 1'000 + 10, 5));
  }
  EXPECT_EQ(analyze_timeline(builder.sorted()).steps.size(), 5u);
}

TEST(Phases, SlowFirstStepsAreWarmUp) {
  TimelineBuilder builder;
  std::int64_t at = 0;
  for (int i = 0; i < 8; ++i) {
    const std::int64_t length = i < 2 ? 5'000 : 1'000;
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(i), at, length);
    builder.kernel("gemm", at + 100, length - 200, builder.launch(at + 10, 5));
    at += length;
  }
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.steps.size(), 6u);
  ASSERT_EQ(analysis.phases.size(), 2u);
  EXPECT_EQ(analysis.phases[0].kind, PhaseKind::kStartUp);
  EXPECT_EQ(analysis.phases[0].steps, 2);
  EXPECT_EQ(analysis.phases[1].steps, 6);
}

// An evaluation and a checkpoint are no part of a step; the time in which the device waits is.
TEST(Phases, RareWorkBetweenTheStepsIsLeftOut) {
  for (const bool works : {true, false}) {
    TimelineBuilder builder;
    std::int64_t at = 0;
    for (int i = 0; i < 12; ++i) {
      if (i == 4 || i == 8) {
        for (int k = 0; works && k < 10; ++k)
          builder.kernel("eval", at + 10 + k * 500, 400, builder.launch(at + k * 500, 5));
        at += 5'000;
      }
      builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(i), at, 1'000);
      builder.kernel("gemm", at + 100, 800, builder.launch(at + 10, 5));
      at += 1'000;
    }
    const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
    ASSERT_EQ(analysis.devices.size(), 1u);
    const DeviceTime& device = analysis.devices[0];
    EXPECT_EQ(device.other_works, works ? 2 : 0);
    EXPECT_EQ(device.other_work_ns, works ? 10'000 : 0);
    EXPECT_EQ(device.window_ns, device.span_ns + device.one_off_ns + device.other_work_ns);
    EXPECT_EQ(device.busy_ns, 12 * 800);
    EXPECT_EQ(device.idle_total_ns(), 12 * 200 + (works ? 0 : 10'000));
  }
}

// Such as the steps for which the workers of a data loader come late.
TEST(Phases, LongStepsThatComeAgainAreNoWarmUp) {
  TimelineBuilder builder;
  std::int64_t at = 0;
  for (int i = 0; i < 16; ++i) {
    const std::int64_t length = i % 4 == 0 ? 5'000 : 1'000;
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(i), at, length);
    builder.kernel("gemm", at + 100, length - 200, builder.launch(at + 10, 5));
    at += length;
  }
  EXPECT_EQ(analyze_timeline(builder.sorted()).steps.size(), 16u);
}

// The device is never idle, so only the host shows where its loop begins.
TEST(Rounds, BeginWhereTheHostPausesMost) {
  TimelineBuilder builder;
  std::int64_t host = 0, device = 10'000;
  for (int round = 0; round < 12; ++round) {
    host += 3'000;
    for (const char* name : {"first", "second", "third"}) {
      if (round == 0 && name[0] == 'f') continue;  // recorded from within a round on
      builder.op(std::string("aten::") + name, host, 900);
      builder.kernel(name, device, 50'000, builder.launch(host + 500, 200));
      builder.profile.timeline.calls.back().op =
          static_cast<std::uint32_t>(builder.profile.timeline.ops.size() - 1);
      host += 1'000;
      device += name[0] == 't' ? 50'900 : 50'000;  // a little idle before `first` and no other
      if (name[0] == 'f') device += 1'000;         // and more before `second`
    }
  }
  const Profile& profile = builder.sorted();
  const TimelineAnalysis analysis = analyze_timeline(profile);
  ASSERT_GT(analysis.steps.size(), 3u);
  EXPECT_EQ(analysis.steps_from, "launch sequence");
  const std::int64_t begin = analysis.steps[1].start_ns;
  for (const Activity& activity : profile.timeline.activities) {
    if (activity.start_ns != begin) continue;
    EXPECT_EQ(profile.kernels[activity.row].name, "first");
  }
}

// 300 candidates are tried, each with a check, in nine tenths of the kernel time. 40 steps follow.
TEST(Rounds, OfTheStepsAfterACompilerThatTriesKernelsOut) {
  TimelineBuilder builder;
  std::int64_t at = 0;
  const auto run = [&](const std::string& kernel, std::int64_t ns) {
    builder.kernel(kernel, at, ns);
    at += ns + 10;
  };
  for (int i = 0; i < 300; ++i) {
    for (int again = 0; again < 2 + i % 5; ++again) run("candidate" + std::to_string(i), 40'000);
    run("check", 1'000);
  }
  const std::int64_t end = at;
  for (int step = 0; step < 40; ++step)
    for (int k = 0; k < 30; ++k) run("kernel" + std::to_string(k), 2'000);
  run("print", 100);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.steps_from, kGuessedSteps);
  ASSERT_GE(analysis.steps.size(), 38u);
  EXPECT_GE(analysis.steps[0].start_ns, end);
  EXPECT_EQ(analysis.guessed_launches, 30);
  EXPECT_LT(analysis.guessed_share, 0.1) << "of all kernel time";
  ASSERT_EQ(analysis.sequences.size(), 1u) << "those of the steady state alone";
  EXPECT_EQ(analysis.sequences[0].length, 30);
}

// A checkpoint in one step of many is no idle time of the steady state; a pause in each step is.
// The time in which a device waits in each fourth step is a part of the usual work.
TEST(OneOffGaps, WhatHappensThreeTimesIsNone) {
  for (const int stalls : {2, 4}) {
    TimelineBuilder builder;
    std::int64_t at = 0;
    for (int step = 0; step < 16; ++step) {
      const std::int64_t begin = at;
      if (step % 4 == 3 && step / 4 < stalls) at += 5'000;
      for (int k = 0; k < 10; ++k, at += 100)
        builder.kernel("kernel" + std::to_string(k), at + 10, 90, builder.launch(at, 5));
      builder.range(RangeKind::kStep, "step", begin, at - begin);
    }
    const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
    ASSERT_EQ(analysis.devices.size(), 1u);
    EXPECT_EQ(analysis.devices[0].one_off_gaps, stalls == 2 ? 2 : 0);
    EXPECT_EQ(analysis.devices[0].idle_total_ns() > 20'000, stalls == 4);
  }
}

TEST(OneOffGaps, AreInNoCategory) {
  for (const bool each : {false, true}) {
    TimelineBuilder builder;
    std::int64_t at = 0;
    for (int step = 0; step < 12; ++step) {
      const std::int64_t begin = at;
      for (int k = 0; k < 10; ++k) {
        builder.kernel("kernel" + std::to_string(k), at + 10, 90, builder.launch(at, 5));
        at += 100;
      }
      if (each || step == 5) at += 5'000;
      builder.range(RangeKind::kStep, "step", begin, at - begin);
    }
    const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
    ASSERT_EQ(analysis.devices.size(), 1u);
    const DeviceTime& device = analysis.devices[0];
    EXPECT_EQ(device.one_off_gaps, each ? 0 : 1);
    EXPECT_EQ(device.window_ns, device.span_ns + device.one_off_ns);
    std::int64_t idle = 0;
    for (const std::int64_t ns : device.idle_ns) idle += ns;
    EXPECT_EQ(idle, device.idle_total_ns());
    EXPECT_EQ(idle > 50'000, each) << idle;
    EXPECT_EQ(analysis.gaps[0].one_off, !each);
  }
}

}  // namespace
}  // namespace purlin::analyze
