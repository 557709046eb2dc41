// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace purlin::analyze {
namespace {

KernelRow from_positions(const char* name, const char* op, std::string shape, const char* dtype) {
  return advised_row(name, op, std::move(shape), dtype);
}

// A bias by relative position, made in each layer: `layers` times in a step.
Advice biased(int layers, const char* second = "n=1048576,inputs=1,in=2048") {
  return Program()
      .steps(kSteps,
             [=](Program& program) {
               for (int i = 0; i < layers; ++i) {
                 program.kernel(from_positions("elementwise_kernel_with_index", "aten::arange",
                                               "n=1024,inputs=0", "i64"),
                                1'000);
                 program.kernel(functor("Sub", second, "i64"), 4'000);
                 program.kernel(functor("Log", "n=1048576,inputs=1"), 3'000);
                 program.kernel(from_positions("vectorized_gather_kernel", "aten::embedding",
                                               "indices=16777216,cols=1,rows=512", "bf16"),
                                600'000);
                 program.kernel(functor("Add", "n=16777216,inputs=2", "bf16"), 100'000);
               }
             })
      .advice();
}

TEST(Reuse, WhatFollowsFromPositionsIsMadeOnce) {
  const Advice advice = biased(6);
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(advice.interventions[0].id, "reuse_result");
  EXPECT_TRUE(says(one, "aten::arange and 3 kernels after it"));
  EXPECT_NEAR(one->saved_share.mid, 608.0 / 708 * 11 / 12, 0.03);
  EXPECT_LT(share_of(biased(1), "reuse_result").mid, 0.02);  // once, all but the look-up
  EXPECT_EQ(find(biased(6, "n=1048576,inputs=2"), "reuse_result"), nullptr);  // it reads data
}

// A memory that each iteration projects; `between` is what lies between two projections.
Advice projected(const char* between, bool trains = false) {
  return Program()
      .steps(kSteps,
             [=](Program& program) {
               if (trains) program.op("autograd::engine::evaluate_function: MmBackward0");
               for (int i = 0; i < 5; ++i) {
                 program.kernel(product("M=65536,N=512,K=512"), 60'000);
                 program.kernel(product("M=65536,N=512,K=512"), 60'000);
                 program.kernel(product("B=64,M=8,N=1024,K=512"), 20'000);
                 program.kernel(functor("Exp", between, "bf16"), 10'000);
               }
             })
      .advice();
}

TEST(Reuse, EqualProductsOfAnArrayThatNothingWrites) {
  const Advice advice = projected("n=524288,inputs=1");
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->saved_share.mid, 0.3 * 8 * 60 / 750, 0.02);
  EXPECT_EQ(one->saved_share.low, 0);  // other weights may be meant
  EXPECT_EQ(one->confidence, "D");
  // In a backward pass, the gradient of a layer is the input of the next.
  EXPECT_EQ(find(projected("n=524288,inputs=1", true), "reuse_result"), nullptr);
  // A kernel that writes as many elements may have made a new input.
  EXPECT_EQ(find(projected("n=33554432,inputs=1"), "reuse_result"), nullptr);
}

// Equal layers, each with a kernel next to it; `reader` is what that reads.
TEST(Reuse, LayersOfOneWidthAreNoRepetition) {
  const auto advice_of = [](const char* reader) {
    return Program()
        .steps(kSteps,
               [=](Program& program) {
                 for (int i = 0; i < 6; ++i) {
                   program.kernel(product("M=16384,N=4096,K=4096"), 400'000);
                   program.kernel(reduction(reader, "bf16"), 5'000);
                 }
               })
        .advice();
  };
  EXPECT_EQ(find(advice_of("n=262144,out=4096"), "reuse_result"), nullptr);
  EXPECT_NE(find(advice_of("n=67108864,out=4096"), "reuse_result"), nullptr);
}

// A network over a prompt and what it has written, token by token.
Advice written(std::vector<int> rows, bool trains = false, int other_width = 0) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               if (trains) program.op("autograd::engine::evaluate_function: MmBackward0");
               int pass = 0;
               for (const int m : rows) {
                 const int k = 1024 + other_width * pass++;
                 for (int layer = 0; layer < 3; ++layer) {
                   program.kernel(product(fmt::format("M={},N=4096,K={}", m, k)), 100'000);
                   program.kernel(functor("Gelu", fmt::format("n={},inputs=1", m * 4096), "bf16"),
                                  50'000);
                   program.kernel(product(fmt::format("M={},N={},K=4096", m, k)), 100'000);
                 }
               }
             })
      .advice();
}

TEST(ReuseResult, RowsThatGrowByAToken) {
  const Advice advice = written({8192, 8196, 8200, 8204, 8208});
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Keep the keys and values of earlier tokens");
  // Of the later passes, a few per cent are left; the first reads the prompt.
  EXPECT_NEAR(one->saved_share.mid, 0.8, 0.05);
  EXPECT_LT(one->saved_share.high, 0.95);
  EXPECT_TRUE(says(one, "4 rows more"));
}

TEST(ReuseResult, RowsThatDoNotGrowByAToken) {
  // The same rows, rows at will, few passes, rows that shrink, large parts, weights that change,
  // and training.
  EXPECT_EQ(find(written({8192, 8192, 8192, 8192, 8192}), "reuse_result"), nullptr);
  EXPECT_EQ(find(written({8192, 8292, 8300, 8404, 8408}), "reuse_result"), nullptr);
  EXPECT_EQ(find(written({8192, 8196, 8200}), "reuse_result"), nullptr);
  EXPECT_EQ(find(written({8208, 8204, 8200, 8196, 8192}), "reuse_result"), nullptr);
  EXPECT_EQ(find(written({1024, 2048, 3072, 4096, 5120}), "reuse_result"), nullptr);
  EXPECT_EQ(find(written({8192, 8196, 8200, 8204, 8208}, false, 64), "reuse_result"), nullptr);
  EXPECT_EQ(find(written({8192, 8196, 8200, 8204, 8208}, true), "reuse_result"), nullptr);
}

// A x, again and again: the result has the size of the operand.
TEST(Reuse, ProductsThatMayFollowOneAnotherAreNoRepetition) {
  const Advice advice = Program()
                            .steps(kSteps,
                                   [](Program& program) {
                                     for (int i = 0; i < 12; ++i)
                                       program.kernel(product("M=8192,N=2048,K=8192"), 400'000);
                                   })
                            .advice();
  EXPECT_EQ(find(advice, "reuse_result"), nullptr);
}

// Filters made from positions once in each step, before data comes.
Advice filters_made(const char* third) {
  return Program()
      .steps(kSteps,
             [=](Program& program) {
               program.kernel(
                   from_positions("elementwise_kernel_with_index", "aten::linspace", "257", "f32"),
                   10'000);
               program.kernel(
                   from_positions("elementwise_kernel_with_index", "aten::linspace", "82", "f32"),
                   10'000);
               program.kernel(functor("Div", "n=82,inputs=1"), 10'000);
               program.kernel(functor("Sub", third), 30'000);
               program.kernel(functor("Neg", "n=20560,inputs=1"), 30'000);
               program.kernel(functor("Exp", "n=4194304,inputs=1"), 100'000);
             })
      .advice();
}

TEST(Reuse, WhatFollowsFromConstantsIsMadeBeforeTheSteps) {
  const Advice advice = filters_made("n=21074,inputs=2,in=339");
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "5 launches a step"));  // not the sixth: its size has no origin
  EXPECT_NEAR(one->saved_share.mid, 0.95 * 90 / 190, 0.05);
  EXPECT_GT(one->saved_share.low, 0.2);
}

// A matrix of documents, normalised in each step before a product with a few questions.
Advice documents_prepared(const char* change, const char* gemm, bool written = false,
                          bool trains = false) {
  return Program()
      .steps(kSteps,
             [=](Program& program) {
               if (trains) program.op("autograd::engine::evaluate_function: MmBackward0");
               if (written) program.kernel(functor("Add", "n=67108864,inputs=1"), 100'000);
               program.kernel(functor("Exp", "n=16384,inputs=1"), 5'000);
               program.kernel(reduction("n=67108864,out=262144"), 100'000);
               program.kernel(functor("Clamp", "n=262144,inputs=1"), 2'000);
               program.kernel(functor("Div", change), 200'000);
               program.kernel(product(gemm), 100'000);
             })
      .advice();
}

TEST(Reuse, ALargeOperandThatNothingWritesIsPreparedOnce) {
  const char* divide = "n=67108864,inputs=2";
  const char* gemm = "M=64,N=262144,K=256";
  const Advice advice = documents_prepared(divide, gemm);
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "3 launches a step"));
  EXPECT_NEAR(one->saved_share.mid, 0.9 * 302 / 407, 0.05);
  EXPECT_EQ(one->saved_share.low, 0);  // each step may read another one
  EXPECT_EQ(one->confidence, "D");
  EXPECT_EQ(find(documents_prepared(divide, gemm, true), "reuse_result"), nullptr);
  EXPECT_EQ(find(documents_prepared(divide, gemm, false, true), "reuse_result"), nullptr);
  // Spread from smaller arrays, it may be data; an operand as small as the data may be as well.
  EXPECT_EQ(find(documents_prepared("n=67108864,inputs=2,in=524288", gemm), "reuse_result"),
            nullptr);
  EXPECT_EQ(find(documents_prepared(divide, "M=262144,N=262144,K=256"), "reuse_result"), nullptr);
}

TEST(Reuse, WeightsThatAreNormalisedInEachStep) {
  const auto advice_of = [](bool trains) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 for (int i = 0; i < 4; ++i) {
                   program.within("aten::_weight_norm", [](Program& inner) {
                     inner.kernel(advised_row("weight_norm_fwd_first_dim_kernel",
                                              "aten::_weight_norm_interface", "", "f32"),
                                  25'000);
                   });
                   program.kernel(product("M=4096,N=512,K=512"), 75'000);
                 }
                 if (trains) program.op("autograd::engine::evaluate_function: MmBackward0");
               })
        .advice();
  };
  const Advice advice = advice_of(false);
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Make the normalised weights once");
  EXPECT_NEAR(one->saved_share.mid, 0.25, 0.02);
  EXPECT_EQ(find(advice_of(true), "reuse_result"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
