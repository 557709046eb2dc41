// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

KernelRow launched(const char* name, std::uint32_t blocks) {
  KernelRow out = advised_row(name, "", "", "");
  out.launch.grid = {blocks, 1, 1};
  out.launch.block = {256, 1, 1};
  return out;
}

// A solver: 20 iterations, then a residual of `ns` that the host reads.
Advice solver(double ns, std::uint64_t set = 4, std::uint64_t read = 4) {
  return Program()
      .steps(kSteps,
             [=](Program& program) {
               for (int i = 0; i < 20; ++i) program.kernel(launched("relax", 16'384), 12'000);
               program.copy("memset", 800, set);
               program.kernel(launched("residual", 264), ns);
               program.copy("d2h", 2'000, read);
             })
      .advice();
}

TEST(ReduceInBlocks, AReductionOfTwelvePassesIsNamed) {
  const Advice advice = solver(132'000);
  const Intervention* one = find(advice, "reduce_in_blocks");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(advice.interventions[0].id, "reduce_in_blocks");
  EXPECT_NEAR(one->saved_share.mid, (132 - 24) / 375.0, 0.03);
  EXPECT_NEAR(one->saved_share.high, (132 - 12) / 375.0, 0.04);
  EXPECT_TRUE(says(one, "4.19 M threads against 67.6 k"));
}

TEST(ReduceInBlocks, SilentWhereItIsAsFastAsAPassOrNoReduction) {
  EXPECT_EQ(find(solver(24'000), "reduce_in_blocks"), nullptr);
  EXPECT_EQ(find(solver(132'000, 1 << 20, 1 << 20), "reduce_in_blocks"), nullptr);
  EXPECT_EQ(find(solver(132'000, 4, 4096), "reduce_in_blocks"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
