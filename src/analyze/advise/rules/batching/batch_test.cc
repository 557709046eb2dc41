// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// A state of 64 x 64 for each of 64 heads, over 32 points of time; the host sets the pace.
Advice recurrence(const char* gained, const char* changed, const char* multiplied) {
  KernelRow outer = functor("mul", gained);
  outer.name += " of two";
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < 32; ++i) {
                 program.late_kernel(functor(changed, "n=262144,inputs=1"), 2'000, 10'000);
                 program.late_kernel(outer, 2'000, 10'000);
                 program.late_kernel(functor("add", "n=262144,inputs=2"), 2'000, 10'000);
                 program.late_kernel(product(multiplied), 2'000, 10'000);
               }
             })
      .advice();
}

const Intervention* parallel_form(const Advice& advice) {
  for (const Intervention& one : advice.interventions)
    if (one.id == "batch_products" && one.title.find("recurrence") != std::string::npos)
      return &one;
  return nullptr;
}

TEST(BatchProducts, ARecurrenceOfOuterProductsHasAParallelForm) {
  const char *outer = "n=262144,inputs=2,in=8192", *vector = "B=64,M=1,N=64,K=64";
  const Advice advice = recurrence(outer, "mul", vector);
  const Intervention* one = parallel_form(advice);
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "32 of 4 launches"));
  // 128 launches of 12 us become 12 short ones.
  EXPECT_NEAR(one->saved_share.mid, 1 - 12 * 2.0 / (128 * 12), 0.05);
  // Another function of the state, no outer product, a product of whole matrices.
  EXPECT_EQ(parallel_form(recurrence(outer, "tanh", vector)), nullptr);
  EXPECT_EQ(parallel_form(recurrence("n=262144,inputs=2", "mul", vector)), nullptr);
  EXPECT_EQ(parallel_form(recurrence(outer, "mul", "B=64,M=64,N=64,K=64")), nullptr);
}

// One vector after the other times one matrix; each product ends by adding its parts up.
Advice vectors(int count, const char* after) {
  const KernelRow parts = product("M=1,N=4096,K=4096", "void cublasLt::splitKreduce_kernel<32>()");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < count; ++i) {
                 program.within("aten::mm", [&](Program& inner) {
                   inner.kernel(product("M=1,N=4096,K=4096"), 8'000);
                   if (after == nullptr) inner.kernel(parts, 1'600);
                 });
                 if (after != nullptr)
                   program.within(after, [&](Program& inner) { inner.kernel(parts, 1'600); });
               }
             })
      .advice();
}

TEST(BatchProducts, VectorsWhoseProductsAreSplit) {
  const Advice advice = vectors(32, nullptr);
  const Intervention* one = find(advice, "batch_products");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "32 x "));
  EXPECT_GT(one->saved_share.mid, 0.8);
  // Another op between the products; and too few of them.
  EXPECT_EQ(find(vectors(32, "aten::tanh"), "batch_products"), nullptr);
  EXPECT_EQ(find(vectors(3, nullptr), "batch_products"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
