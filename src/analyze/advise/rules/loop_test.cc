// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/loop.h"

#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

constexpr const char* kSmallGemm = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3";
constexpr std::int64_t kLate = 20'000;

KernelRow small(std::string shape) { return product(std::move(shape), kSmallGemm); }

// Each member of an ensemble has its own weights; the result is smaller than the input.
Advice ensemble(int members) {
  return Program()
      .steps(kSteps,
             [members](Program& program) {
               for (int i = 0; i < members; ++i) {
                 program.late_kernel(small("M=128,N=512,K=256"), 4'000, kLate);
                 program.late_kernel(functor("Relu", "n=65536,inputs=1", "bf16"), 2'000, kLate);
                 program.late_kernel(small("M=128,N=64,K=512"), 4'000, kLate);
               }
             })
      .advice();
}

TEST(Loops, RoundsOfSmallProductsAreBatched) {
  const Advice advice = ensemble(10);
  const Intervention* one = find(advice, "batch_products");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "10 rounds of 3 launches"));
  EXPECT_EQ(one->id, advice.interventions[0].id);
  EXPECT_GT(one->saved_share.mid, 0.8);  // a tenth of the launches is left
  EXPECT_EQ(find(ensemble(3), "batch_products"), nullptr);
}

// A cell reads the state that the round before has written, from any place of the round.
TEST(Loops, RoundsOfARecurrentNetDependOnEachOther) {
  const Advice advice =
      Program()
          .steps(kSteps,
                 [](Program& program) {
                   for (int t = 0; t < 40; ++t) {
                     program.late_kernel(small("M=64,N=1024,K=128"), 4'000, kLate);
                     program.late_kernel(small("M=64,N=1024,K=256"), 4'000, kLate);
                     program.late_kernel(functor("Add", "n=65536,inputs=2", "bf16"), 2'000, kLate);
                     program.late_kernel(functor("Tanh", "n=16384,inputs=1", "bf16"), 2'000, kLate);
                   }
                 })
          .advice();
  EXPECT_EQ(find(advice, "batch_products"), nullptr);
  ASSERT_NE(find(advice, "cut_host_work"), nullptr);
  EXPECT_TRUE(says(find(advice, "cut_host_work"), "40 rounds of the same kernels"));
}

TEST(Loops, WhatRepeatsManyTimesIsWorthMoreThanHalf) {
  const auto looped = [](int rounds, int others, double ns = 3'000) {
    return Program()
        .steps(kSteps,
               [=](Program& program) {
                 for (int i = 0; i < rounds; ++i)
                   program.late_kernel(reduction("n=32768,out=1"), ns, kLate);
                 for (int i = 0; i < others; ++i)
                   program.late_kernel(functor("Add" + std::to_string(i), "n=4096,inputs=1"), 3'000,
                                       kLate);
               })
        .advice();
  };
  EXPECT_GT(share_of(looped(60, 0), "cut_host_work").mid, 0.7);
  EXPECT_GT(share_of(looped(60, 0), "cut_host_work").low, 0.4);
  EXPECT_LT(share_of(looped(6, 20), "cut_host_work").mid, 0.5);
  EXPECT_FALSE(says(find(looped(6, 20), "cut_host_work"), "loops within a step"));
  // Long kernels take as long in a batch: half of the host's part is what may go.
  EXPECT_LT(share_of(looped(12, 0, 100'000), "cut_host_work").mid, 0.15);
}

// Of a step in training, layers repeat as well, but no batch holds two of them. What an average of
// the weights does to each tensor can be done to all at once.
TEST(Loops, LayersInTrainingAreNoRounds) {
  const auto trained = [](bool trains) {
    return Program()
        .steps(kSteps,
               [=](Program& program) {
                 if (trains) program.op("autograd::engine::evaluate_function: MmBackward0");
                 for (int i = 0; i < 20; ++i) {
                   program.late_kernel(small("M=128,N=256,K=256"), 4'000, kLate);
                   program.late_kernel(functor("Relu", "n=32768,inputs=1", "bf16"), 2'000, kLate);
                 }
                 for (int i = 0; i < 20; ++i)
                   program.late_kernel(functor("Mul", "n=65536,inputs=1"), 2'000, kLate);
               })
        .advice();
  };
  const Advice layers = trained(true), cells = trained(false);
  EXPECT_TRUE(says(find(layers, "cut_host_work"), "loops within a step: 33.3%"));
  EXPECT_NEAR(share_of(layers, "cut_host_work").mid, 0.8 / 3, 0.06);
  EXPECT_LT(share_of(layers, "cut_host_work").high, 0.45);
  EXPECT_GT(share_of(cells, "cut_host_work").mid, 0.7);
}

KernelRow attention() {
  return advised_row("void pytorch_flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64> >()",
                     "aten::scaled_dot_product_attention", "", "bf16");
}

// The layers of a transformer that generates text are alike, and each needs the one before.
TEST(Loops, LayersOfATransformerAreNoRounds) {
  const auto generate = [](bool attends) {
    return Program()
        .steps(kSteps,
               [=](Program& program) {
                 for (int layer = 0; layer < 12; ++layer) {
                   program.late_kernel(small("M=8,N=3072,K=1024"), 4'000, kLate);
                   program.late_kernel(attends ? attention() : functor("Relu", "n=8192,inputs=1"),
                                       4'000, kLate);
                   program.late_kernel(small("M=8,N=1024,K=1024"), 4'000, kLate);
                 }
               })
        .advice();
  };
  EXPECT_TRUE(says(find(generate(false), "cut_host_work"), "loops within a step"));
  const Advice layers = generate(true);
  ASSERT_NE(find(layers, "cut_host_work"), nullptr);
  EXPECT_FALSE(says(find(layers, "cut_host_work"), "loops within a step"));
}

// The nodes of a CUDA graph repeat, but the host launches them with one call.
TEST(Loops, NodesOfAGraphAreNoLaunches) {
  Program program;
  program.steps(kSteps, [](Program& step) {
    step.work(40'000);
    for (int i = 0; i < 20; ++i) {
      step.late_kernel(small("M=128,N=256,K=256"), 4'000, i == 0 ? kLate : 1'000);
      step.builder().profile.timeline.activities.back().graph = 5;
    }
    step.late_kernel(functor("Add", "n=4096,inputs=1"), 3'000, kLate);
  });
  EXPECT_FALSE(says(find(program.advice(), "cut_host_work"), "loops within a step"));
}

// A matrix times a vector that the round before has made: no batch holds two of these rounds.
TEST(Loops, AVectorThatARoundHandsOnIsNotBatched) {
  const auto iterated = [](const char* vector) {
    return Program()
        .steps(kSteps,
               [=](Program& program) {
                 for (int i = 0; i < 20; ++i) {
                   program.late_kernel(small("M=1536,N=1,K=1536"), 4'000, kLate);
                   program.late_kernel(functor("Div", vector, "bf16"), 2'000, kLate);
                 }
               })
        .advice();
  };
  EXPECT_EQ(find(iterated("n=1536,inputs=2"), "batch_products"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
