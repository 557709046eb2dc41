// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

Advice inverted(const char* inputs, const char* op = "aten::linalg_inv") {
  const KernelRow factors = advised_row("void getrf_semiwarp<float, float, 2, 3, true>()",
                                        "aten::linalg_lu_factor_ex", "", "f32"),
                  solved = advised_row("void trsm_batch_left_lower_kernel<float>()",
                                       "aten::linalg_lu_solve", "", "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               with_inputs(program, op, inputs, [&](Program& inner) {
                 inner.kernel(factors, 1e5);
                 inner.kernel(solved, 4e5);
               });
             })
      .advice();
}

TEST(SmallMatrices, TheirInverseIsAFormula) {
  const Advice advice = inverted("262144x3x3");
  const Interval3 share = share_of(advice, "reduce_problem");
  EXPECT_NEAR(share.mid, 1 - 12 * 10'000 / 5e5, 0.03);
  EXPECT_NEAR(share.low, 1 - 12 * 19'661 / 5e5, 0.05);  // the passes at a fifth of the bandwidth
  EXPECT_TRUE(says(find(advice, "reduce_problem"), "262 k matrices of 3 rows"));
}

TEST(SmallMatrices, IsSilentOtherwise) {
  EXPECT_EQ(find(inverted("65536x8x8"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(inverted("64x3x3"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(inverted("262144x4x3"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(inverted("262144x3x3", "aten::bmm"), "reduce_problem"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
