// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// Rounds of a product for each of 16,384 systems, and a select that keeps those that are done.
Advice iterated(int rounds, const char* select, const char* systems = "B=16384,M=64,N=1,K=64") {
  const KernelRow kept = advised_row("void at::native::elementwise_kernel<128, 2, where>()",
                                     "aten::where", select, "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < rounds; ++i)
                 program.kernel(product(systems), 3e5).kernel(kept, 5e3);
             })
      .advice();
}
constexpr const char* kOneFlagEach = "n=1048576,inputs=3,in=2113536,read=8404992";

TEST(Done, RoundsThatGoOnForItemsThatAreDone) {
  const Advice advice = iterated(8, kOneFlagEach);
  const Interval3 share = share_of(advice, "reduce_problem");
  EXPECT_NEAR(share.mid, 0.5 * 7 / 8, 0.03);
  EXPECT_LE(share.low, 0.01);
  EXPECT_TRUE(says(find(advice, "reduce_problem"), "8 rounds of 16.4 k items"));
}

TEST(Done, IsSilentOtherwise) {
  EXPECT_EQ(find(iterated(3, kOneFlagEach), "reduce_problem"), nullptr);
  // A flag for each element, and a product of something else.
  EXPECT_EQ(find(iterated(8, "n=1048576,inputs=3,in=3145728,read=9437184"), "reduce_problem"),
            nullptr);
  EXPECT_EQ(find(iterated(8, kOneFlagEach, "B=100,M=64,N=64,K=64"), "reduce_problem"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
