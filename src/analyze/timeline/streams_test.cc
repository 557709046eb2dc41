// SPDX-License-Identifier: Apache-2.0
// Queues, launches, sequences and their hindrances.
#include "analyze/timeline/queues.h"
#include "analyze/timeline/testing.h"
#include "analyze/timeline/timeline.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

TEST(Queue, DepthIsWhatWasLaunchedAndHasNotBegun) {
  TimelineBuilder builder;
  builder.kernel("a", 100, 100, builder.launch(0, 5));
  builder.kernel("b", 200, 100, builder.launch(10, 5));
  builder.kernel("c", 300, 100, builder.launch(20, 5));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());  // spans 0 to 400
  ASSERT_EQ(analysis.queues.size(), 1u);
  EXPECT_EQ(analysis.queues[0].max_depth, 3);
  EXPECT_DOUBLE_EQ(analysis.queues[0].mean_depth, (100.0 + 190 + 280) / 400);
  EXPECT_EQ(analysis.queues[0].full_ns, 0);
}

TEST(Queue, LaunchesThatWereLostTakeNothingFromIt) {
  TimelineBuilder builder;
  for (int i = 0; i < 50; ++i) builder.kernel("lost", i, 1);
  builder.kernel("a", 100, 10, builder.launch(90, 5));
  builder.kernel("early", 200, 10, builder.launch(205, 5));  // clocks a little apart
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.queues[0].max_depth, 1);
  EXPECT_DOUBLE_EQ(analysis.queues[0].mean_depth, 10.0 / 210);
}

TEST(Queue, TimeAtTheDepthWhereLaunchesBlock) {
  TimelineBuilder builder;
  for (int i = 0; i < 1100; ++i) builder.kernel("a", 5000 + i * 10, 10, builder.launch(i, 1));
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.queues[0].max_depth, 1100);
  // From the 1,022nd launch until the first 79 of 1,100 have begun.
  EXPECT_EQ(analysis.queues[0].full_ns, 5000 + 78 * 10 - 1021);
}

TEST(Queue, AGraphsLaunchIsOneEntry) {
  TimelineBuilder builder;
  const std::uint32_t call = builder.call(CallKind::kGraphLaunch, "cudaGraphLaunch", 0, 10);
  for (int i = 0; i < 20; ++i) builder.kernel("node", 100 + 10 * i, 10, call);
  const TimelineAnalysis analysis = analyze_timeline(builder.sorted());
  EXPECT_EQ(analysis.queues[0].max_depth, 1);
  EXPECT_TRUE(analysis.sequences.empty()) << "it is a graph already";
}

TEST(Launches, CallsLatencyAndTinyKernels) {
  TimelineBuilder builder;
  builder.kernel("tiny", 8, 2, builder.launch(0, 5));       // latency 3
  builder.kernel("tiny", 12, 3, builder.launch(10, 5));     // begun before its call returned
  builder.kernel("big", 50, 1000, builder.launch(20, 20));  // latency 10
  const LaunchStats stats = analyze_timeline(builder.sorted()).launches;
  EXPECT_EQ(stats.launches, 3);
  EXPECT_EQ(stats.call_p50_ns, 5);
  EXPECT_EQ(stats.latency_p50_ns, 3);
  EXPECT_EQ(stats.latency_p95_ns, 10);
  EXPECT_EQ(stats.tiny, 2);
  EXPECT_EQ(stats.tiny_ns, 5);
}

// Rounds of three kernels; `between` is called at the host time between the second and third
// launch.
template <class Between>
std::vector<RepeatedSequence> rounds(int count, Between between) {
  TimelineBuilder builder;
  for (int round = 0; round < count; ++round) {
    const std::int64_t at = round * 1000;
    builder.kernel("gemm", at + 50, 30, builder.launch(at, 10));
    builder.kernel("relu", at + 80, 30, builder.launch(at + 10, 10));
    between(builder, at + 20, round);
    builder.kernel("norm", at + 110, 30, builder.launch(at + 30, 10));
    builder.call(CallKind::kSync, "cudaDeviceSynchronize", at + 45, 100);  // after the round: fine
  }
  return analyze_timeline(builder.sorted()).sequences;
}

TEST(Sequences, ARoundThatCouldBeAGraph) {
  const auto found = rounds(10, [](TimelineBuilder&, std::int64_t, int) {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kernels, (std::vector<std::string>{"gemm", "relu", "norm"}));
  EXPECT_EQ(found[0].length, 3);
  EXPECT_EQ(round_of(found[0]), "3 kernels");
  EXPECT_EQ(found[0].repeats, 10);
  EXPECT_EQ(found[0].total_ns, 9 * 1000 + 90);
  EXPECT_EQ(found[0].busy_ns, 10 * 90);
  EXPECT_EQ(found[0].hindrance, "");
}

TEST(Sequences, OneKernelAgainAndAgainIsACandidateOnlyWhereTheDeviceWaits) {
  const auto found = [](std::int64_t period, bool copies) {
    TimelineBuilder builder;
    for (int i = 0; i < 50; ++i)
      if (copies)
        builder.copy("h2d", i * period + 20, 30);
      else
        builder.kernel("gelu", i * period + 20, 30, builder.launch(i * period, 10));
    return analyze_timeline(builder.sorted()).sequences.size();
  };
  EXPECT_EQ(found(31, false), 0u);
  EXPECT_EQ(found(100, false), 1u);
  EXPECT_EQ(found(100, true), 0u);
}

TEST(Sequences, AWaitInsideIsAHindrance) {
  const auto found = rounds(10, [](TimelineBuilder& builder, std::int64_t at, int) {
    builder.call(CallKind::kSync, "cudaStreamSynchronize", at, 5);
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].hindrance, "the host waits inside: cudaStreamSynchronize (10 times)");
}

TEST(Sequences, AnAllocationInsideIsAHindrance) {
  const auto found = rounds(10, [](TimelineBuilder& builder, std::int64_t at, int) {
    builder.call(CallKind::kAllocation, "cudaMalloc", at, 5);
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].hindrance, "memory is allocated or freed inside: cudaMalloc (10 times)");
}

TEST(Sequences, AnAllocationInTheOrderOfAStreamIsNone) {
  const auto found = rounds(10, [](TimelineBuilder& builder, std::int64_t at, int) {
    builder.call(CallKind::kAllocation, "cudaMallocAsync", at, 5);
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].hindrance, "");
}

TEST(Sequences, ACopyToTheHostInsideIsAHindrance) {
  const auto found = rounds(10, [](TimelineBuilder& builder, std::int64_t at, int) {
    const std::uint32_t call = builder.call(CallKind::kCopy, "cudaMemcpyAsync", at, 5);
    builder.copy("d2h", at + 89, 1, call);
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].length, 4);
  EXPECT_EQ(round_of(found[0]), "3 kernels and 1 memcpy or memset");
  EXPECT_EQ(found[0].hindrance, "1 memcpy to the host in a round");
}

TEST(Sequences, LaunchShapesThatVaryAreAHindrance) {
  const auto found = rounds(10, [](TimelineBuilder& builder, std::int64_t, int round) {
    builder.profile.timeline.activities.back().row =
        builder.kernel_row("relu", static_cast<std::uint32_t>(1 + round % 2));
  });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].length, 3);
  EXPECT_EQ(found[0].hindrance, "launch shapes or problem shapes vary between rounds: relu");
}

// Layers of one kind with other shapes, equal in each step: the step is the round.
TEST(Sequences, ShapesThatComeAgainInEachStepAreNone) {
  TimelineBuilder builder;
  std::int64_t at = 0;
  for (int step = 0; step < 6; ++step)
    for (const std::uint32_t grid : {8, 16, 32, 64, 16, 8, 128})
      for (const char* kernel : {"conv", "norm", "relu"}) {
        builder.kernel(kernel, at + 20, 30, builder.launch(at, 10)).row =
            builder.kernel_row(kernel, grid);
        at += 100;
      }
  const auto found = analyze_timeline(builder.sorted()).sequences;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].length, 21);
  EXPECT_EQ(found[0].hindrance, "");
}

}  // namespace
}  // namespace purlin::analyze
