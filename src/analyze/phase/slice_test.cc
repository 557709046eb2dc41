// SPDX-License-Identifier: Apache-2.0
#include "analyze/phase/slice.h"

#include "analyze/timeline/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// Rows have the durations of their activities, as importers and captures make them.
Profile with_rows(TimelineBuilder& builder) {
  Profile profile = builder.sorted();
  for (const Activity& activity : profile.timeline.activities) {
    const auto ns = static_cast<double>(activity.duration_ns);
    if (activity.kind == ActivityKind::kKernel) {
      profile.kernels[activity.row].duration.add(ns);
    } else {
      profile.copies[activity.row].duration.add(ns);
      profile.copies[activity.row].bytes += static_cast<double>(activity.bytes);
    }
  }
  return profile;
}

// `initial` kernels of 1 us before ten steps of 4 kernels of 1 us.
TimelineBuilder with_start_up(int initial) {
  TimelineBuilder builder;
  for (int i = 0; i < initial; ++i)
    builder.kernel("init", i * 2'000, 1'000, builder.launch(i * 2'000 - 100, 50));
  builder.copy("h2d", initial * 2'000, 500).bytes = 4096;
  const std::int64_t begin = 1'000'000;
  for (int step = 0; step < 10; ++step) {
    const std::int64_t at = begin + step * 5'000;
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(step), at, 5'000);
    for (int k = 0; k < 4; ++k)
      builder.kernel(k == 0 ? "init" : "gemm", at + 100 + k * 1'100, 1'000,
                     builder.launch(at + k * 100, 50));
  }
  return builder;
}

double launches_of(const Profile& profile) {
  double sum = 0;
  for (const KernelRow& row : profile.kernels) sum += row.duration.count();
  return sum;
}

TEST(SelectPhase, AnEvaluationBetweenTheStepsIsCutOut) {
  TimelineBuilder builder;
  std::int64_t at = 0;
  for (int step = 0; step < 10; ++step) {
    if (step == 5)
      for (int k = 0; k < 20; ++k, at += 1'000)
        builder.kernel("eval", at + 100, 900, builder.launch(at + 10, 50));
    builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(step), at, 5'000);
    for (int k = 0; k < 4; ++k)
      builder.kernel("gemm", at + 100 + k * 1'100, 1'000, builder.launch(at + 10 + k * 100, 50));
    at += 5'000;
  }
  Profile profile = with_rows(builder);
  const Result<TimelineAnalysis> analysis = select_phase(profile, PhaseChoice::kSteadyState);
  ASSERT_TRUE(analysis.is_ok());
  EXPECT_TRUE(analysis->rows_of_phase);
  EXPECT_EQ(analysis->launches_outside, 20);
  ASSERT_EQ(profile.kernels.size(), 1u);
  EXPECT_EQ(launches_of(profile), 40);
  EXPECT_EQ(profile.timeline.activities.size(), 40u);
  EXPECT_EQ(profile.timeline.calls.size(), 40u) << "of the host's records, too";
}

TEST(SelectPhase, RowsAreOfTheSteadyState) {
  TimelineBuilder builder = with_start_up(30);
  Profile profile = with_rows(builder);
  const Result<TimelineAnalysis> analysis = select_phase(profile, PhaseChoice::kSteadyState);
  ASSERT_TRUE(analysis.is_ok());
  EXPECT_TRUE(analysis->rows_of_phase);
  EXPECT_EQ(analysis->launches_outside, 30);
  EXPECT_EQ(analysis->kernel_ns_outside, 30'000);
  EXPECT_EQ(launches_of(profile), 40);
  EXPECT_TRUE(profile.copies.empty());
  EXPECT_EQ(profile.timeline.activities.size(), 40u);
  // The result is a sound profile: the same steps, and each launch has its call.
  const TimelineAnalysis again = analyze_timeline(profile);
  EXPECT_EQ(again.steps.size(), analysis->steps.size());
  EXPECT_EQ(again.devices[0].busy_ns, analysis->devices[0].busy_ns);
  for (const Activity& activity : profile.timeline.activities)
    EXPECT_LT(activity.call, profile.timeline.calls.size());
}

TEST(SelectPhase, TheStartUpAndTheSteadyStateAreTheWhole) {
  TimelineBuilder builder = with_start_up(30);
  const Profile whole = with_rows(builder);
  Profile start_up = whole, steady = whole, all = whole;
  ASSERT_TRUE(select_phase(start_up, PhaseChoice::kStartUp).is_ok());
  ASSERT_TRUE(select_phase(steady, PhaseChoice::kSteadyState).is_ok());
  ASSERT_TRUE(select_phase(all, PhaseChoice::kAll).is_ok());
  EXPECT_EQ(launches_of(start_up), 30);
  EXPECT_EQ(launches_of(start_up) + launches_of(steady), launches_of(whole));
  EXPECT_EQ(launches_of(all), launches_of(whole));
  ASSERT_EQ(start_up.copies.size(), 1u);
  EXPECT_EQ(start_up.copies[0].bytes, 4096);
}

// A kernel of the start-up does not come back as a row of its stall samples.
TEST(SelectPhase, StallSamplesOfTheStartUpAreLeftOut) {
  TimelineBuilder builder = with_start_up(30);
  builder.kernel("load", 60'100, 5'000, builder.launch(60'000, 50));
  Profile profile = with_rows(builder);
  for (const char* name : {"load", "gemm", "called_by_kernels"}) {
    StallFunction& function = profile.stalls.functions.emplace_back();
    function.name = name;
  }
  ASSERT_TRUE(select_phase(profile, PhaseChoice::kSteadyState).is_ok());
  std::vector<std::string> names;
  for (const StallFunction& function : profile.stalls.functions) names.push_back(function.name);
  EXPECT_EQ(names, (std::vector<std::string>{"gemm", "called_by_kernels"}));
}

// A start-up with little work is no reason to leave launches out.
TEST(SelectPhase, LittleOutsideLeavesTheRowsWhole) {
  TimelineBuilder builder = with_start_up(1);
  Profile profile = with_rows(builder);
  const Result<TimelineAnalysis> analysis = select_phase(profile, PhaseChoice::kSteadyState);
  ASSERT_TRUE(analysis.is_ok());
  EXPECT_FALSE(analysis->rows_of_phase);
  EXPECT_EQ(launches_of(profile), 41);
}

TEST(SelectPhase, ATimelineThatLacksLaunchesLeavesTheRowsWhole) {
  TimelineBuilder builder = with_start_up(30);
  Profile profile = with_rows(builder);
  profile.kernels[0].duration.add(1'000);  // a launch that the timeline does not hold
  const Result<TimelineAnalysis> analysis = select_phase(profile, PhaseChoice::kSteadyState);
  ASSERT_TRUE(analysis.is_ok());
  EXPECT_FALSE(analysis->rows_of_phase);
  EXPECT_EQ(launches_of(profile), 71);
  EXPECT_NE(Json::array_of(analysis->limits).dump().find("rows are of the whole run"),
            std::string::npos);
}

// The timeline of a plain profile is a part of the run with all of its launches: a slow start-up
// outside of it does not rank.
TEST(SelectPhase, RowsOfAPlainProfileAreThoseOfItsTimeline) {
  TimelineBuilder builder = with_start_up(0);
  Profile profile = with_rows(builder);
  profile.source = "purlin";
  profile.processes[0].timeline_from_ns = 1'000'000;
  for (int i = 0; i < 20; ++i) profile.kernels[0].duration.add(100'000);  // before the timeline
  Profile requested = profile;
  requested.processes[0].timeline_requested = true;
  const Result<TimelineAnalysis> analysis = select_phase(profile, PhaseChoice::kSteadyState);
  ASSERT_TRUE(analysis.is_ok());
  EXPECT_TRUE(analysis->rows_of_phase);
  EXPECT_EQ(launches_of(profile), 40);
  EXPECT_EQ(analysis->launches_outside, 20);
  EXPECT_NEAR(analysis->kernel_ns_outside, 2e6, 1e5);
  ASSERT_TRUE(select_phase(requested, PhaseChoice::kSteadyState).is_ok());
  EXPECT_EQ(launches_of(requested), 60);
}

// As many launches as the rows have, and yet others: capture had ended before.
TEST(SelectPhase, ATraceOfSomeStepsLeavesTheRowsOfTheRunWhole) {
  TimelineBuilder builder = with_start_up(30);
  Profile profile = with_rows(builder);
  profile.coverage.notes.push_back({"torch_trace", "", 0, 0});
  const Result<TimelineAnalysis> analysis = select_phase(profile, PhaseChoice::kSteadyState);
  ASSERT_TRUE(analysis.is_ok());
  EXPECT_FALSE(analysis->rows_of_phase);
  EXPECT_EQ(launches_of(profile), 70);
}

// Purlin recorded the start-up only, and the trace is of the steady state: its kernels rank.
TEST(SelectPhase, ATraceOfSomeStepsReplacesRowsOfTheStartUp) {
  TimelineBuilder builder = with_start_up(0);
  Profile profile = with_rows(builder);
  profile.source = "purlin";
  profile.coverage.notes.push_back({"torch_trace", "", 0, 0});
  for (int i = 0; i < 20; ++i) profile.kernels[0].duration.add(100'000);  // before the trace
  Profile recorded = profile;
  for (const char* cause : {"launch_bound", "torch_end"}) {
    Profile ended = recorded;
    ended.coverage.notes.push_back({cause, "", 0, 0});
    const Result<TimelineAnalysis> analysis = select_phase(ended, PhaseChoice::kSteadyState);
    ASSERT_TRUE(analysis.is_ok());
    EXPECT_TRUE(analysis->rows_of_phase);
    EXPECT_EQ(launches_of(ended), 40) << cause;
  }
  ASSERT_TRUE(select_phase(recorded, PhaseChoice::kSteadyState).is_ok());
  EXPECT_EQ(launches_of(recorded), 60) << "recorded to the end: its totals are the run's";
}

TEST(SelectPhase, NoStartUpIsAnError) {
  TimelineBuilder builder;
  builder.kernel("gemm", 0, 10);
  Profile profile = with_rows(builder);
  EXPECT_EQ(select_phase(profile, PhaseChoice::kStartUp).status().code(), Code::kNotFound);
  EXPECT_FALSE(phase_from_text("warm").is_ok());
}

}  // namespace
}  // namespace purlin::analyze
