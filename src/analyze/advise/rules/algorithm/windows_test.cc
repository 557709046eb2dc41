// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

Advice pooled(const char* shape, double ns) {
  const KernelRow pool = advised_row("void at::native::max_pool_forward_nchw<float, int>()",
                                     "aten::max_pool2d_with_indices", shape, "f32");
  return Program().steps(kSteps, [&](Program& program) { program.kernel(pool, ns); }).advice();
}
// A maximum over the windows of a view that holds each element 256 times.
Advice unfolded(double ns, bool unfolds) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(product("M=4096,N=4096,K=64"), 5e4);
               if (unfolds)
                 with_inputs(program, "aten::unfold", "16x131072,0,0,0", [](Program&) {});
               program.kernel(reduction("n=535826432,out=2093072"), ns);
             })
      .advice();
}

TEST(Windows, APoolingAtEveryElementShares) {
  const Advice advice = pooled("n=16777216,out=16700000", 3e6);
  // Eight doublings read two views and write one, at half of the bandwidth.
  const double pass = 3 * 4 * 16'777'216.0 / (0.5 * kBandwidth) * 1e9;
  EXPECT_NEAR(share_of(advice, "reduce_problem").mid, 1 - 8 * pass / 3e6, 0.02);
  EXPECT_TRUE(says(find(advice, "reduce_problem"), "108 times as long"));
}

TEST(Windows, AViewOfWindowsThatIsReduced) {
  const Advice advice = unfolded(1e6, true);
  EXPECT_NEAR(share_of(advice, "reduce_problem").mid, (1e6 - 8 * 12'000) / 1.05e6, 0.03);
  EXPECT_TRUE(says(find(advice, "reduce_problem"), "256 and 2.10 M"));
}

TEST(Windows, IsSilentOtherwise) {
  // A short window; one next to the other; a short kernel.
  EXPECT_EQ(find(pooled("n=16777216,out=16777216", 2e5), "reduce_problem"), nullptr);
  EXPECT_EQ(find(pooled("n=16777216,out=4096", 3e6), "reduce_problem"), nullptr);
  EXPECT_EQ(find(pooled("n=16777,out=16700", 3e4), "reduce_problem"), nullptr);
  // No view, or as fast as the array is read.
  EXPECT_EQ(find(unfolded(1e6, false), "reduce_problem"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
