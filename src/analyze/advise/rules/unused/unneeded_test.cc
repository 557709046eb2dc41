// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

constexpr const char* kFirstLayer =
    "N=64,C=3,H=192,W=192,K=64,R=5,S=5,P=192,Q=192,padding=2,gradients=2";

void backward_of_filters(Program& program) {
  program.within("autograd::engine::evaluate_function: ConvolutionBackward0", [](Program& outer) {
    with_inputs(outer, "aten::convolution_backward", kFirstLayer, [](Program& inner) {
      inner.kernel(advised_row("sm90_xmma_dgrad_implicit_gemm_bf16", "aten::convolution_backward",
                               kFirstLayer, "bf16"),
                   1e6);
      inner.kernel(advised_row("sm90_xmma_wgrad_implicit_gemm_bf16", "aten::convolution_backward",
                               kFirstLayer, "bf16"),
                   4e5);
    });
  });
}
void backward_of_product(Program& program, const std::string& shape, double ns) {
  program.within("autograd::engine::evaluate_function: MmBackward0",
                 [&](Program& inner) { inner.kernel(product(shape), ns); });
}
void accumulate(Program& program, const char* extents) {
  with_inputs(program, "torch::autograd::AccumulateGrad", extents, [](Program&) {});
}
void update(Program& program, const char* lists) {
  with_inputs(program, "aten::_fused_adam_", lists, [](Program& inner) {
    inner.kernel(advised_row("void multi_tensor_apply_kernel<FusedAdamMathFunctor>()",
                             "aten::_fused_adam_", "", "f32"),
                 1e4);
  });
}
template <class Step>
Advice training(Step step) {
  return Program().steps(kSteps, step).advice();
}

// Pictures that take gradients: two gradients are accumulated, one tensor is updated.
Advice pictures(const char* lists, bool read = false) {
  return training([&](Program& program) {
    backward_of_filters(program);
    accumulate(program, "64x3x192x192");
    accumulate(program, "64x3x5x5");
    if (read) program.kernel(functor("sign", "n=7077888,inputs=1"), 2e4);
    update(program, lists);
  });
}

TEST(Unneeded, TheGradientOfAnInputIsNotTaken) {
  const Advice advice = pictures("n=4800,inputs=4,outputs=3,tensors=1");
  EXPECT_NEAR(share_of(advice, "reduce_problem").mid, 1e6 / 1.41e6, 0.03);
  EXPECT_TRUE(says(find(advice, "reduce_problem"), "1 tensor of 7.08 M elements"));
}

TEST(Unneeded, IsSilentWhereAllAreTakenOrRead) {
  EXPECT_EQ(find(pictures("n=7082688,inputs=4,outputs=3,tensors=2"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(pictures(""), "reduce_problem"), nullptr);  // longer lists are not recorded
  // No choice of the gradients has that size.
  EXPECT_EQ(find(pictures("n=4000,inputs=4,outputs=3,tensors=1"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(pictures("n=4800,inputs=4,outputs=3,tensors=1", true), "reduce_problem"), nullptr);
}

TEST(Unneeded, SeveralPassesForOneUpdateAreTaken) {
  const auto passes = [](int count, const char* lists) {
    return training([=](Program& program) {
      for (int i = 0; i < count; ++i) {
        backward_of_filters(program);
        accumulate(program, "64x3x192x192");
        accumulate(program, "64x3x5x5");
      }
      update(program, lists);
    });
  };
  EXPECT_EQ(find(passes(4, "n=7082688,inputs=4,outputs=3,tensors=2"), "reduce_problem"), nullptr);
  EXPECT_NEAR(share_of(passes(4, "n=4800,inputs=4,outputs=3,tensors=1"), "reduce_problem").mid,
              4e6 / 5.61e6, 0.03);
}

// A critic that is trained through the generator: all that follows its own gradients goes, and the
// gradient of its input.
TEST(Unneeded, WhatFollowsTheLastGradientThatIsTakenGoes) {
  const Advice advice = training([](Program& program) {
    backward_of_product(program, "M=4096,N=1024,K=512", 2e5);  // of the critic's input
    backward_of_product(program, "M=512,N=1024,K=4096", 3e5);
    accumulate(program, "512x1024");
    program.within("autograd::engine::evaluate_function: ReluBackward0", [](Program& inner) {
      inner.kernel(functor("threshold", "n=4194304,inputs=2"), 4e4);
    });
    backward_of_product(program, "M=4096,N=256,K=1024", 5e4);
    backward_of_product(program, "M=1024,N=256,K=4096", 1e5);
    accumulate(program, "1024x256");
    update(program, "n=524288,inputs=4,outputs=3,tensors=1");
  });
  EXPECT_NEAR(share_of(advice, "reduce_problem").mid, 3.9e5 / 7e5, 0.03);
}

// Of more than 30 tensors PyTorch records no sizes: the blocks of the optimizer's kernel count
// chunks of 65,536 elements. The large weights are too many in every choice; the small ones may be
// either.
TEST(Unneeded, LongListsCountInChunks) {
  const auto trained = [](std::uint32_t blocks) {
    return training([=](Program& program) {
      backward_of_product(program, "M=1024,N=4096,K=4096", 3e5);
      accumulate(program, "1024x4096");
      backward_of_product(program, "M=1024,N=16,K=4096", 2e4);
      accumulate(program, "1024x16");
      accumulate(program, "1024");
      with_inputs(program, "aten::_fused_adam_", "", [=](Program& inner) {
        KernelRow row = advised_row("void multi_tensor_apply_kernel<FusedAdamMathFunctor>()",
                                    "aten::_fused_adam_", "", "f32");
        row.launch.grid = {blocks, 1, 1};
        inner.kernel(row, 1e4);
      });
    });
  };
  const Advice advice = trained(1);
  EXPECT_NEAR(share_of(advice, "reduce_problem").mid, 3e5 / 3.3e5, 0.03);
  EXPECT_TRUE(says(find(advice, "reduce_problem"), "1 tensor of 4.19 M elements"));
  EXPECT_EQ(find(trained(66), "reduce_problem"), nullptr);  // All are taken.
  EXPECT_EQ(find(trained(33), "reduce_problem"), nullptr);  // Two passes for one update.
  EXPECT_EQ(find(trained(40), "reduce_problem"), nullptr);  // No choice has that size.
}

}  // namespace
}  // namespace purlin::analyze
