// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <algorithm>

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

// A network whose result is larger than its input: its input is made again before it.
void enlarging(Program& program, const char* made) {
  program.kernel(functor("Mul", made), 10'000);
  launched(program, "aten::addmm", "M=65536,N=512,K=128", 100'000);
  launched(program, "aten::addmm", "M=65536,N=256,K=512", 250'000);
}
Advice enlarged_twice(const char* made) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < 2; ++i) enlarging(program, made);
               launched(program, kGradient, "M=65536,N=512,K=256", 250'000);
               launched(program, kGradient, "M=512,N=256,K=65536", 250'000);
               launched(program, kGradient, "M=512,N=128,K=65536", 100'000);
             })
      .advice();
}

TEST(ReuseResult, APassBeginsWithWhatIsMadeAnew) {
  EXPECT_NE(find(enlarged_twice("n=8388608,inputs=1"), "reuse_result"), nullptr);
  EXPECT_EQ(find(enlarged_twice("n=4194304,inputs=1"), "reuse_result"), nullptr);
}

// Codes of weights that no kernel writes, expanded for each chunk.
Advice expanded(int times, const char* codes, const char* dtype) {
  KernelRow code = advised_row(
      "void at::native::unrolled_elementwise_kernel<at::native::"
      "direct_copy_kernel_cuda(at::TensorIteratorBase&)>()",
      "aten::copy_", codes, dtype);
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < times; ++i) {
                 program.kernel(code, 140'000);
                 program.kernel(functor("Mul", "n=50331648,inputs=1", "bf16"), 130'000);
                 program.kernel(product("M=1024,N=12288,K=4096"), 130'000);
               }
             })
      .advice();
}

TEST(ReuseResult, ChainsThatBeginWithWhatNothingWrites) {
  const char* codes = "n=50331648,inputs=1,write=100663296";
  const Advice advice = expanded(4, codes, "i8");
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  EXPECT_LE(one->saved_share.low, 0);
  EXPECT_NEAR(one->saved_share.mid, 0.7 * 0.75 * 270 / 400, 0.03);
  EXPECT_TRUE(says(one, "4 of 2 kernels a step"));
  const auto found = [](const Advice& of) {
    return std::any_of(
        of.interventions.begin(), of.interventions.end(),
        [](const Intervention& other) { return says(&other, "a chain of kernels"); });
  };
  EXPECT_TRUE(found(advice));
  EXPECT_FALSE(found(expanded(1, codes, "i8")));
  // An array of that size and type is written in the step.
  EXPECT_FALSE(found(expanded(4, "n=50331648,inputs=1", "bf16")));
}

}  // namespace
}  // namespace purlin::analyze
