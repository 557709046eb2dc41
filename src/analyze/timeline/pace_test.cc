// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/pace.h"

#include "analyze/phase/slice.h"
#include "analyze/timeline/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

constexpr std::int64_t kUs = 1'000;

// 50 steps of `step_us`, each of 10 launches and two waits.
TimelineBuilder loop(std::int64_t step_us) {
  TimelineBuilder builder;
  for (std::int64_t step = 0; step < 50; ++step) {
    const std::int64_t begin = step * step_us * kUs;
    builder.range(RangeKind::kStep, "step", begin, step_us * kUs);
    for (std::int64_t i = 0; i < 10; ++i) {
      const std::int64_t at = begin + i * 10 * kUs;
      builder.kernel("k", at + 2 * kUs, 5 * kUs, builder.launch(at, kUs));
    }
    builder.call(CallKind::kCopy, "cuMemcpyDtoH", begin + 150 * kUs, 2 * kUs);
    builder.call(CallKind::kSync, "cuStreamSynchronize", begin + 160 * kUs, 2 * kUs);
  }
  builder.sorted();
  return builder;
}

Pace count(double steps, double step_us) { return {2 * steps, steps * step_us * 1e3}; }

TEST(Pace, IsOfTheStepsThatNobodyRecorded) {
  TimelineBuilder builder = loop(200);
  builder.profile.processes[0].paces = {count(5'000, 182), count(5'000, 180), count(5'000, 181)};
  const TimelineAnalysis analysis = analyze_timeline(builder.profile);
  const std::optional<PacedStep> step = step_by_pace(builder.profile, analysis);
  ASSERT_TRUE(step);
  EXPECT_DOUBLE_EQ(step->calls, 2);
  EXPECT_NEAR(step->ns, 181e3, 1);
  EXPECT_NEAR(step->low_ns, 180e3, 1);
  EXPECT_NEAR(step->high_ns, 182e3, 1);
  EXPECT_NEAR(step->recorded_ns, 200e3, 1);
  EXPECT_EQ(step->counts, 3u);

  Profile profile = builder.profile;
  ASSERT_TRUE(select_phase(profile, PhaseChoice::kSteadyState).is_ok());
  EXPECT_NEAR(profile.coverage.step_ns, 181e3, 1);
  ASSERT_EQ(profile.coverage.notes.size(), 1u);
  EXPECT_EQ(profile.coverage.notes[0].cause, "step_pace");
}

// The first recorded rounds may hold the waits of a compiler that tries kernels out.
TEST(Pace, RoundsWithManyMoreCallsDoNotCount) {
  TimelineBuilder builder = loop(200);
  for (std::int64_t i = 0; i < 500; ++i)
    builder.call(CallKind::kSync, "cuStreamSynchronize", 201 * kUs + i * 300, 100);
  builder.sorted();
  builder.profile.processes[0].paces = {count(5'000, 180)};
  const TimelineAnalysis analysis = analyze_timeline(builder.profile);
  const std::optional<PacedStep> step = step_by_pace(builder.profile, analysis);
  ASSERT_TRUE(step);
  EXPECT_DOUBLE_EQ(step->calls, 2);
  EXPECT_NEAR(step->ns, 180e3, 1);
}

TEST(Pace, OfOtherWorkIsLeftOut) {
  TimelineBuilder builder = loop(200);
  const TimelineAnalysis analysis = analyze_timeline(builder.profile);
  auto& paces = builder.profile.processes[0].paces;
  EXPECT_FALSE(step_by_pace(builder.profile, analysis)) << "none was counted";
  paces = {count(5'000, 90), count(5'000, 230), count(3, 180)};
  EXPECT_FALSE(step_by_pace(builder.profile, analysis)) << "evaluation, a pause, too few";
  paces.push_back(count(5'000, 190));
  EXPECT_NEAR(step_by_pace(builder.profile, analysis)->ns, 190e3, 1);
  std::erase_if(builder.profile.timeline.calls,
                [](const Call& call) { return call.kind != CallKind::kLaunch; });
  EXPECT_FALSE(step_by_pace(builder.profile, analysis)) << "a step has no such call";
}

TEST(Pace, TheProgramsOwnClockIsBetter) {
  TimelineBuilder builder = loop(200);
  builder.profile.processes[0].paces = {count(5'000, 181)};
  builder.profile.coverage.step_ns = 179e3;
  apply_pace(builder.profile, analyze_timeline(builder.profile));
  EXPECT_EQ(builder.profile.coverage.step_ns, 179e3);
  EXPECT_TRUE(builder.profile.coverage.notes.empty());
}

// Optimizer steps of four rounds each: not the rounds that were found.
TEST(Pace, AStepThatIsNotTheGuessedOneIsNotUsed) {
  TimelineBuilder builder = loop(200);
  TimelineAnalysis analysis = analyze_timeline(builder.profile);
  analysis.steps_from = kGuessedSteps;
  builder.profile.coverage.step_ns = 800e3;
  apply_pace(builder.profile, analysis);
  EXPECT_EQ(builder.profile.coverage.step_ns, 0);
}

}  // namespace
}  // namespace purlin::analyze
