// SPDX-License-Identifier: Apache-2.0
// What a stated cut of the data would give, and launches that cannot run.
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace purlin::analyze {
namespace {

TEST(WhatIf, AStatedCutOfTheDataStandsNextToTuning) {
  // Kernels at 35 % of the bandwidth: tuning to 65 % takes 53.8 % of their time, 60 % less data 40
  // %.
  constexpr double kElements = 1 << 24;
  AdviceOptions options;
  options.data_cut = 0.6;
  options.targets.memory = 0.65;
  const Advice advice = Program()
                            .steps(12,
                                   [](Program& program) {
                                     for (int i = 0; i < 4; ++i)
                                       program.kernel(functor("Exp", "n=16777216,inputs=1"),
                                                      pointwise_time(kElements, 0.35));
                                   })
                            .advice(options);
  ASSERT_FALSE(advice.what_if.empty());
  const WhatIf& cut = advice.what_if.front();
  EXPECT_EQ(cut.resource, "data");
  EXPECT_NEAR(cut.saved_share, 0.6, 0.02);
  EXPECT_NE(cut.text.find("would save 45"), std::string::npos) << cut.text;
  EXPECT_NE(cut.text.find("restructure first"), std::string::npos) << cut.text;
}

// Without the host's calls the gain by a faster host is not known.
TEST(WhatIf, NothingIsSaidOfAHostThatWasNotRecorded) {
  const auto says_host = [](bool recorded) {
    Program program;
    program.steps(12, [](Program& step) {
      step.late_kernel(functor("Exp", "n=16777216,inputs=1"), 50'000, 40'000);
    });
    Profile profile = program.profile();
    if (!recorded) {
      profile.timeline.calls.clear();
      for (Activity& activity : profile.timeline.activities) activity.call = kNone;
    }
    const Advice advice = advise(profile, analyze_timeline(profile));
    return std::any_of(advice.what_if.begin(), advice.what_if.end(),
                       [](const WhatIf& one) { return one.resource == "host"; });
  };
  EXPECT_TRUE(says_host(true));
  EXPECT_FALSE(says_host(false));
}

// The nodes of graphs have no known call, and the host's waits were recorded in part. A report once
// said that kernels twice as fast save 0.1 % of a step. The device worked for 68 % of it.
TEST(WhatIf, UnknownCallsOfMostKernelsSayNothingOfTheHost) {
  const auto claims = [](bool linked) {
    Program program;
    program.steps(12, [](Program& step) {
      for (int i = 0; i < 4; ++i)
        step.late_kernel(functor("Exp", "n=16777216,inputs=1"), 50'000, 40'000);
    });
    Profile profile = program.profile();
    if (!linked)
      for (Activity& activity : profile.timeline.activities) activity.call = kNone;
    const Advice advice = advise(profile, analyze_timeline(profile));
    return std::any_of(advice.what_if.begin(), advice.what_if.end(),
                       [](const WhatIf& one) { return one.resource == "kernels"; });
  };
  EXPECT_TRUE(claims(true));
  EXPECT_FALSE(claims(false));
}

TEST(WhatIf, ALaunchBeyondTheLimitsIsAnAlert) {
  KernelRow row = functor("Exp", "n=16777216,inputs=1");
  row.launch.block = {2048, 1, 1};
  const Advice advice =
      Program().steps(12, [&](Program& program) { program.kernel(row, 50'000); }).advice();
  const bool said = std::any_of(advice.alerts.begin(), advice.alerts.end(), [](const Alert& one) {
    return one.id == "cannot_launch" && one.text.find("cannot launch") != std::string::npos;
  });
  EXPECT_TRUE(said);
}

// A trace that names the GPU, and not how many SMs it has.
TEST(WhatIf, AGridOfOneBlockOnANamedGpu) {
  KernelRow row = advised_row("add(int, float*, float*)", "", "", "");
  row.launch.grid = {1, 1, 1};
  row.launch.block = {32, 1, 1};
  Program program;
  program.builder().profile.environment.devices[0].compute_units = 0;
  const Advice advice =
      program.steps(3, [&](Program& one) { one.kernel(row, 2'000'000'000); }).advice();
  const Intervention* one = find(advice, "fill_the_device");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "132 SMs"));
  EXPECT_GT(one->saved_share.mid, 0.8);
}

TEST(WhatIf, FailedLaunchesAreAnAlert) {
  Program program;
  program.steps(kSteps, [](Program& one) { one.kernel(product("M=4096,N=4096,K=4096"), 1e6); });
  program.builder().profile.coverage.notes.push_back(
      {"launches_failed", "launches returned cudaErrorInvalidConfiguration (9): x", 3, 0});
  const Advice advice = program.advice();
  EXPECT_TRUE(std::any_of(advice.alerts.begin(), advice.alerts.end(), [](const Alert& one) {
    return one.id == "launches_failed" && one.text.starts_with("3 launches returned cudaError");
  }));
}

// The host stands still in an asynchronous copy to pageable memory: faster kernels are waited for
// less.
TEST(WhatIf, KernelsBeforeACopyToPageableMemorySetThePace) {
  const auto saved = [](bool stands) {
    Program program;
    TimelineBuilder& builder = program.builder();
    const KernelRow row = advised_row("relax(float*, int)", "", "", "");
    std::int64_t host = 0;
    for (int step = 0; step < 12; ++step) {
      const std::int64_t begin = host;
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t call = builder.launch(host, 4'000);
        builder.kernel(row.name, host + 5'000, 200'000, call);
        builder.profile.kernels[0].duration.add(200'000);
        builder.profile.kernels[0].launch = row.launch;
        const std::int64_t end = host + 207'000;
        const std::uint32_t copy = builder.call(CallKind::kCopy, "cudaMemcpyAsync", host + 4'500,
                                                stands ? end - host - 4'000 : 3'000);
        builder.copy("d2h pageable", end - 2'000, 1'000, copy).bytes = 4;
        host = end + 100'000;
      }
      builder.range(RangeKind::kStep, "ProfilerStep#" + std::to_string(step), begin, host - begin);
    }
    for (const WhatIf& one : program.advice().what_if)
      if (one.resource == "kernels") return one.saved_share;
    return -1.0;
  };
  EXPECT_GT(saved(true), 0.25);
  EXPECT_LT(saved(false), 0.1);
}

}  // namespace
}  // namespace purlin::analyze
