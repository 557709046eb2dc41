// SPDX-License-Identifier: Apache-2.0
// Steps and their breakdown; ranks.
#include "analyze/timeline/steps.h"

#include "analyze/timeline/testing.h"
#include "analyze/timeline/timeline.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

TEST(Steps, EachMomentCountsForTheFirstCategoryThatCoversIt) {
  TimelineBuilder builder;
  builder.range(RangeKind::kStep, "ProfilerStep#1", 0, 1000);
  builder.range(RangeKind::kDataLoader, "loader", 0, 300);
  builder.op("aten::a", 250, 350);                       // 300 to 600 is the CPU's, except calls
  const std::uint32_t launch = builder.launch(310, 20);  // runtime
  builder.kernel("gemm", 500, 200, launch);              // kernel, though an op runs too
  builder.copy("h2d", 650, 100, launch, 8);              // 50 of it not under the kernel
  builder.copy("memset", 760, 10, launch, 8);
  builder.kernel("ncclDevKernel_AllReduce", 690, 100, launch, 9);  // what is left of it: 10 + 20
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  ASSERT_EQ(analysis.steps.size(), 1u);
  const StepTime& step = analysis.steps[0];
  EXPECT_EQ(analysis.steps_from, "ranges");
  EXPECT_EQ(step.name, "ProfilerStep#1");
  EXPECT_EQ(step.duration_ns, 1000);
  EXPECT_EQ(step.kernel_ns, 200);
  EXPECT_EQ(step.copy_ns, 50);
  EXPECT_EQ(step.set_ns, 10);
  EXPECT_EQ(step.communication_ns, 30);
  EXPECT_EQ(step.runtime_ns, 20);
  EXPECT_EQ(step.data_loader_ns, 300);
  EXPECT_EQ(step.cpu_ns, 180);
  EXPECT_EQ(step.other_ns, 210);
}

// The device lags behind the host: a step lasts until its work has ended, and the next begins then.
TEST(Steps, AreExtendedToTheDevice) {
  TimelineBuilder builder;
  for (int i = 0; i < 3; ++i) {
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(i), 100 + i * 100, 100);
    builder.kernel("gemm", 150 + i * 120, 110, builder.launch(110 + i * 100, 5));
  }
  builder.kernel("before", 90, 40);  // not of the first step, which begins after it
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  ASSERT_EQ(analysis.steps.size(), 3u);
  EXPECT_EQ(analysis.steps[0].start_ns, 130);
  EXPECT_EQ(analysis.steps[0].duration_ns, 260 - 130);
  EXPECT_EQ(analysis.steps[1].start_ns, 260);
  EXPECT_EQ(analysis.steps[1].duration_ns, 120);
  EXPECT_EQ(analysis.steps[2].start_ns, 380);
  EXPECT_EQ(analysis.devices[0].begin_ns, 130);
  EXPECT_EQ(analysis.devices[0].span_ns, 500 - 130);
  EXPECT_EQ(analysis.devices[0].work_span_ns, 500 - 90);
  EXPECT_EQ(analysis.mean_step.name, "mean of 3 steps");
}

TEST(Steps, ALastStepWhoseWorkIsCutOffIsNoStep) {
  TimelineBuilder builder;
  for (int i = 0; i < 3; ++i) {
    builder.range(RangeKind::kStep, "step", i * 100, 100);
    for (int k = 0; k < (i == 2 ? 3 : 4); ++k)
      builder.kernel("gemm", i * 100 + 10 + k * 10, 5, builder.launch(i * 100 + k, 1));
  }
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.steps.size(), 2u);
  ASSERT_FALSE(analysis.limits.empty());
  EXPECT_EQ(analysis.limits.back(),
            "device 0: last 1 step left out, because the profile lacks part of the launched work");
}

TEST(Steps, FromTheProgramsOwnRanges) {
  TimelineBuilder builder;
  builder.range(RangeKind::kUser, "epoch 1", 0, 400);
  for (int i = 0; i < 4; ++i) {
    builder.range(RangeKind::kUser, "train_step " + std::to_string(i), i * 100, 90);
    builder.range(RangeKind::kUser, "forward", i * 100, 40);
    builder.kernel("gemm", i * 100 + 20, 30, builder.launch(i * 100 + 10, 5));
  }
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.steps_from, "user ranges");
  ASSERT_EQ(analysis.steps.size(), 4u);
  EXPECT_EQ(analysis.steps[2].name, "train_step 2");
}

// A compiler's ranges carry the name of what it compiles, and take long. Nothing is launched in
// them, or what it tries out.
TEST(Steps, ARangeOfACompilerIsNone) {
  TimelineBuilder builder;
  for (int i = 0; i < 4; ++i) {
    builder.range(RangeKind::kUser, "compile:#module=jit_step#", i * 1000, 900);
    builder.range(RangeKind::kUser, "XlaPass:#name=autotuner,module=jit_step#", i * 1000, 900);
    builder.range(RangeKind::kUser, "kernel-rewriter", i * 1000, 900);
  }
  for (int i = 0; i < 40; ++i) {
    const int at = 5000 + i * 100;
    builder.range(RangeKind::kUser, "XlaModule:#hlo_module=jit_step#", at, 30);
    builder.kernel("gemm", at + 20, 30, builder.launch(at + 10, 5));
    builder.kernel("relu", at + 60, 30, builder.launch(at + 20, 5));
  }
  builder.kernel("tried", 1200, 900, builder.launch(1010, 5));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  ASSERT_GE(analysis.steps.size(), 39u);
  EXPECT_EQ(analysis.steps[2].name, "XlaModule:#hlo_module=jit_step#");
}

TEST(Steps, ANameCountsByWholeWords) {
  for (const std::string name : {"trainStep", "train_step", "step", "Iter 3", "iteration#4",
                                 "mini-batch", "minibatch", "BATCH"}) {
    TimelineBuilder builder;
    for (int i = 0; i < 4; ++i) builder.range(RangeKind::kUser, name, i * 100, 90);
    EXPECT_EQ(host_steps(builder.sorted().timeline, 0).steps.size(), 4u) << name;
  }
  for (const std::string name : {"rewriter", "footsteps", "arbiter", "XlaPass:#module=jit_step#"}) {
    TimelineBuilder builder;
    for (int i = 0; i < 4; ++i) builder.range(RangeKind::kUser, name, i * 100, 90);
    EXPECT_TRUE(host_steps(builder.sorted().timeline, 0).steps.empty()) << name;
  }
}

TEST(Steps, FromWhatTheDeviceDoesAgainAndAgain) {
  TimelineBuilder builder;
  for (int i = 0; i < 6; ++i)
    for (int k = 0; k < 5; ++k)
      builder.kernel("kernel" + std::to_string(k), i * 1000 + k * 100, 90);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.steps_from, "launch sequence");
  ASSERT_EQ(analysis.steps.size(), 6u);
  EXPECT_EQ(analysis.steps[0].duration_ns, 1000);
  EXPECT_EQ(analysis.steps[5].duration_ns, 490);
}

TEST(Steps, NoneIsSaid) {
  TimelineBuilder builder;
  builder.kernel("a", 0, 10);
  builder.kernel("b", 20, 10);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_TRUE(analysis.steps.empty());
  EXPECT_EQ(analysis.steps_from, "");
  ASSERT_FALSE(analysis.limits.empty());
  EXPECT_NE(analysis.limits.back().find("no steps"), std::string::npos);
  EXPECT_TRUE(to_json(analysis)["mean_step"].is_null());
}

// Device 1 begins its collectives 40 us late; all end together.
TimelineBuilder two_ranks(std::int64_t clock) {
  TimelineBuilder builder(2);
  builder.profile.processes.resize(2);
  builder.profile.processes[0].rank = 0;
  builder.profile.processes[1].rank = 1;
  for (int i = 0; i < 10; ++i) {
    const std::int64_t at = 1'000'000 * (i + 1);
    builder.kernel("ncclDevKernel_AllReduce", at, 100'000, kNone, 9, 0);
    builder.kernel("ncclDevKernel_AllReduce", at + 40'000 + clock, 60'000, kNone, 9, 1).process = 1;
  }
  return builder;
}

TEST(Ranks, TheOneThatKeepsOthersWaiting) {
  TimelineBuilder builder = two_ranks(0);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  ASSERT_EQ(analysis.ranks.size(), 2u);
  EXPECT_EQ(analysis.ranks[0].last, 0);
  EXPECT_EQ(analysis.ranks[1].rank, 1);
  EXPECT_EQ(analysis.ranks[1].collectives, 10);
  EXPECT_EQ(analysis.ranks[1].last, 10);
  EXPECT_EQ(analysis.ranks[1].late_ns, 40'000);
  EXPECT_EQ(analysis.ranks[1].clock_offset_ns, 0);
}

TEST(Ranks, ClocksThatDisagreeAreSaidAndTakenOut) {
  TimelineBuilder builder = two_ranks(-7'000'000);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  ASSERT_EQ(analysis.ranks.size(), 2u);
  EXPECT_EQ(analysis.ranks[1].clock_offset_ns, -7'000'000);
  EXPECT_EQ(analysis.ranks[1].late_ns, 40'000);
  EXPECT_EQ(analysis.ranks[1].last, 10);
  const std::string limits = Json::array_of(analysis.limits).dump();
  EXPECT_NE(
      limits.find(
          "the clock of rank 1 (device 1) is about 7.000 ms behind that of rank 0 (device 0)"),
      std::string::npos)
      << limits;
}

TEST(Ranks, DifferentNumbersOfCollectivesAreNotCompared) {
  TimelineBuilder builder = two_ranks(0);
  builder.kernel("ncclDevKernel_AllReduce", 20'000'000, 10, kNone, 9, 0);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_TRUE(analysis.ranks.empty());
}

}  // namespace
}  // namespace purlin::analyze
