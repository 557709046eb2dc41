// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

constexpr const char* kGradient = "autograd::engine::evaluate_function: AddmmBackward0";

void launched(Program& program, const char* op, const char* shape, double ns) {
  program.within(op, [&](Program& inner) { inner.kernel(product(shape), ns); });
}

void critic(Program& program, const char* hidden) {
  launched(program, "aten::addmm", "M=65536,N=512,K=128", 100'000);
  program.kernel(functor("Tanh", "n=33554432,inputs=1"), 50'000);
  launched(program, "aten::addmm", hidden, 250'000);
  program.kernel(functor("Tanh", "n=33554432,inputs=1"), 50'000);
  launched(program, "aten::addmm", "M=65536,N=1,K=512", 50'000);
}
void gradients(Program& program) {
  launched(program, kGradient, "M=65536,N=512,K=1", 50'000);
  launched(program, kGradient, "M=1,N=512,K=65536", 50'000);
  launched(program, kGradient, "M=65536,N=512,K=512", 250'000);
  launched(program, kGradient, "M=512,N=512,K=65536", 250'000);
  launched(program, kGradient, "M=512,N=128,K=65536", 100'000);
}
Advice critics(int passes, int trained, const char* hidden = "M=65536,N=512,K=512") {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < passes; ++i)
                 critic(program, i > 0 ? hidden : "M=65536,N=512,K=512");
               for (int i = 0; i < trained; ++i) gradients(program);
             })
      .advice();
}

TEST(ReuseResult, APassWithoutAGradientBesideOneWithIt) {
  const Advice advice = critics(2, 1);
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  const double spare = 500'000.0 / 1'700'000;
  EXPECT_NEAR(one->saved_share.mid, 0.6 * spare, 0.03);
  EXPECT_LE(one->saved_share.low, 0);
  EXPECT_GE(one->saved_share.high, spare - 0.02);
  EXPECT_TRUE(says(one, "2 and 1, 3 products each"));
  // A frozen network for each of four heads.
  EXPECT_NEAR(share_of(critics(4, 1), "reuse_result").mid, 0.6 * 1.5 / 2.7, 0.03);
}

TEST(ReuseResult, PassesThatAllHaveGradientsAreOfTwoNetworks) {
  EXPECT_EQ(find(critics(2, 2), "reuse_result"), nullptr);
  EXPECT_EQ(find(critics(1, 1), "reuse_result"), nullptr);
  // Another network; and a program that does not train.
  EXPECT_EQ(find(critics(2, 1, "M=65536,N=512,K=256"), "reuse_result"), nullptr);
  EXPECT_EQ(find(critics(2, 0), "reuse_result"), nullptr);
}

// Layers that follow one another read each other's result.
TEST(ReuseResult, EqualLayersAreNoPasses) {
  const Advice advice =
      Program()
          .steps(kSteps,
                 [](Program& program) {
                   for (int i = 0; i < 6; ++i) {
                     launched(program, "aten::addmm", "M=8192,N=4096,K=1024", 100'000);
                     launched(program, "aten::addmm", "M=8192,N=1024,K=4096", 100'000);
                   }
                   launched(program, kGradient, "M=8192,N=4096,K=1024", 100'000);
                 })
          .advice();
  EXPECT_EQ(find(advice, "reuse_result"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
