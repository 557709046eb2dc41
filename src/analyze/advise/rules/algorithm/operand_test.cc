// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

KernelRow filling(const char* shape) {
  return advised_row(
      "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>()",
      "aten::fill_", shape, "f32");
}

// A matrix is filled by an op, then multiplied.
Advice filled_by(const char* op, const char* zeros, const char* multiplied) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.within(op, [&](Program& inner) {
                 inner.kernel(filling(zeros), 20'000);
                 inner.kernel(conversion("n=4096,inputs=1"), 3'000);
               });
               program.kernel(product(multiplied), 380'000);
             })
      .advice();
}

TEST(ReduceProblem, AProductWithADiagonalMatrix) {
  const Advice advice = filled_by("aten::diag", "n=16777216,inputs=0", "M=4096,N=1024,K=4096");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Scale rows instead of multiplying by a diagonal matrix");
  const double left = 2 * 2.0 * 4096 * 1024 / (0.5 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 403'000, 0.02);
  // Another op; a matrix of another size; and the product's result, which the zeros may begin.
  EXPECT_EQ(find(filled_by("aten::tril", "n=16777216,inputs=0", "M=4096,N=1024,K=4096"),
                 "reduce_problem"),
            nullptr);
  EXPECT_EQ(
      find(filled_by("aten::diag", "n=1048576,inputs=0", "M=4096,N=1024,K=4096"), "reduce_problem"),
      nullptr);
  EXPECT_EQ(
      find(filled_by("aten::diag", "n=4194304,inputs=0", "M=4096,N=1024,K=4096"), "reduce_problem"),
      nullptr);
}

// 4,096 tokens; a mask of 8,192 places, spread from one-hot matrices, before the product and after.
Advice experts(const char* places, const char* spread) {
  const KernelRow scatter = advised_row("_scatter_gather_elementwise_kernel scatter_fill",
                                        "aten::scatter_", places, "i64");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(scatter, 4'000);
               program.kernel(functor("Mul", spread, "bf16"), 86'000);
               program.kernel(product("M=8192,N=1024,K=4096"), 81'000);
               program.kernel(product("B=16,M=512,N=4096,K=1024"), 92'000);
               program.kernel(functor("Mul", "n=33554432,inputs=2,in=33558528", "bf16"), 83'000);
               program.kernel(product("M=4096,N=1024,K=8192"), 78'000);
             })
      .advice();
}

TEST(ReduceProblem, ExpertsThatAreReachedByMasks) {
  const char* spread = "n=33554432,inputs=2,in=2162688";
  const Advice advice = experts("indices=4096,cols=1,rows=2097152", spread);
  double saved = 0;
  int found = 0;
  for (const Intervention& one : advice.interventions)
    if (one.id == "reduce_problem") {
      EXPECT_EQ(one.title, "Move rows by index instead of multiplying by one-hot masks");
      saved += one.saved_share.mid;
      ++found;
    }
  EXPECT_GT(found, 0);
  EXPECT_NEAR(saved, (86.0 + 81 + 83 + 78 - 21) / 424, 0.05);
  // Entries of another count; and whole arrays that are multiplied.
  EXPECT_EQ(find(experts("indices=1000,cols=1,rows=2097152", spread), "reduce_problem"), nullptr);
  EXPECT_EQ(
      find(experts("indices=4096,cols=1,rows=2097152", "n=33554432,inputs=2"), "reduce_problem"),
      nullptr);
}

// A band: zeros, three diagonals of 4,096 values, and the product.
Advice banded(int diagonals, const char* written) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(filling("n=16777216,inputs=0"), 20'000);
               for (int i = 0; i < diagonals; ++i) program.kernel(conversion(written), 2'000);
               program.kernel(product("M=4096,N=4096,K=4096"), 380'000);
             })
      .advice();
}

TEST(ReduceProblem, AProductWithAnOperandOfZerosAndAFewValues) {
  const Advice advice = banded(3, "n=4096,inputs=1");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Skip the zeros of the operand");
  const double left = 2 * 2.0 * 4096 * 4096 / (0.5 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 406'000, 0.02);
  // Zeros that a result may begin with, and an operand that is written in large parts.
  EXPECT_EQ(find(banded(1, "n=4096,inputs=1"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(banded(3, "n=1048576,inputs=1"), "reduce_problem"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
