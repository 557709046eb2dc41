// SPDX-License-Identifier: Apache-2.0
// A step that takes far longer than the others is in their mean, and is not replayed.
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace purlin::analyze {
namespace {

constexpr const char* kOddProduct =
    "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_32x2_tn_align2>()";

// Ten steps of 1.8 ms; one of them also has a misaligned product of 6 ms.
Advice one_long_step() {
  int step = 0;
  return Program()
      .steps(10,
             [&step](Program& program) {
               for (int i = 0; i < 10; ++i)
                 program.kernel(product("M=4096,N=4096,K=4096"), 180'000);
               if (step++ == 5)
                 program.kernel(product("M=8192,N=50257,K=2048", kOddProduct), 6'000'000);
             })
      .advice();
}
bool says_in_notes(const Advice& advice, std::string_view words) {
  return std::any_of(advice.notes.begin(), advice.notes.end(), [&](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
}

TEST(UnevenSteps, ALongStepIsNotTheRecordersDoing) {
  const Advice advice = one_long_step();
  EXPECT_NEAR(advice.unit.baseline_ns.mid, advice.unit.recorded_ns, 0.01 * advice.unit.recorded_ns);
  EXPECT_TRUE(says_in_notes(advice, "1 of 10 steps takes more than twice the median"));
  EXPECT_FALSE(says_in_notes(advice, "one-off"));
}

TEST(UnevenSteps, NothingTwiceAsFastSavesMoreThanHalf) {
  for (const WhatIf& one : one_long_step().what_if) {
    if (one.resource == "kernels" || one.resource == "compute") {
      EXPECT_LE(one.saved_share, 0.501) << one.text;
    }
  }
}

// What lies in the long step alone is judged by its kernels, over all steps.
TEST(UnevenSteps, AFaultOfTheLongStepIsNamed) {
  const Advice advice = one_long_step();
  const Intervention* one = find(advice, "align_dimensions");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->estimate, "kernels");
  EXPECT_GT(one->saved_share.mid, 0.03);
  EXPECT_LT(one->saved_share.high, 0.25) << "the kernel takes a quarter of the time";
}

TEST(UnevenSteps, AStopThatHappensOnceIsSaid) {
  int step = 0;
  const Advice advice =
      Program()
          .steps(12,
                 [&step](Program& program) {
                   for (int i = 0; i < 10; ++i)
                     program.late_kernel(product("M=4096,N=4096,K=4096"), 180'000, 1'000);
                   if (step++ == 5) program.wait().work(30'000'000);
                   program.kernel(product("M=4096,N=4096,K=4096"), 180'000);
                 })
          .advice();
  EXPECT_TRUE(says_in_notes(advice, "the device stopped for 30.0 ms in 1 one-off gap"));
}

}  // namespace
}  // namespace purlin::analyze
