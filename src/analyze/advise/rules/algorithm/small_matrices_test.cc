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

Advice decomposed(const char* op, double others) {
  const KernelRow rotated =
      advised_row("void syevbj_batch_32x16()", "aten::linalg_eigh", "", "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               with_inputs(program, op, "16x256x256", [&](Program& inner) {
                 for (int i = 0; i < 64; ++i) inner.kernel(rotated, 20'000);
               });
               program.kernel(functor("Mul", "n=16777216,inputs=2"), others);
             })
      .advice();
}

// The library's rounds over a batch are no systems that the program solves one by one.
TEST(Decompositions, LessThanAllEigenvaluesMayDo) {
  const Advice advice = decomposed("aten::linalg_eigvalsh", 50'000);
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Ask for less than all eigenvalues or singular values");
  EXPECT_EQ(one->confidence, "D");
  EXPECT_LE(one->saved_share.low, 0);
  EXPECT_GT(one->saved_share.high, 0.9);
  EXPECT_EQ(find(advice, "batch_products"), nullptr);
  EXPECT_EQ(find(decomposed("aten::linalg_qr", 50'000), "reduce_problem"), nullptr);
  EXPECT_EQ(find(decomposed("aten::linalg_eigvalsh", 50'000'000), "reduce_problem"), nullptr);
}

// Three passes: the cross product, the product and its sum.
TEST(SmallMatrices, TheirDeterminantTakesThreePasses) {
  EXPECT_NEAR(share_of(inverted("262144x3x3", "aten::linalg_det"), "reduce_problem").mid,
              1 - 3 * 10'000 / 5e5, 0.03);
}

}  // namespace
}  // namespace purlin::analyze
