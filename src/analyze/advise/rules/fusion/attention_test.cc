// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// The product of a classifier, the logarithm of its softmax, and the product of its gradient.
Advice between_products(const char* op) {
  KernelRow normed = softmax("rows=4096,cols=16000");
  normed.op = op;
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(product("M=4096,N=16000,K=512"), 100'000);
               program.kernel(normed, 200'000);
               program.kernel(product("M=4096,N=512,K=16000"), 100'000);
             })
      .advice();
}

TEST(FlashAttention, ALogarithmOfASoftmaxIsOfALoss) {
  EXPECT_NE(find(between_products("aten::_softmax"), "flash_attention"), nullptr);
  EXPECT_EQ(find(between_products("aten::_log_softmax"), "flash_attention"), nullptr);
  EXPECT_EQ(find(between_products("aten::_log_softmax_backward_data"), "flash_attention"), nullptr);
}

// Copies that make an operand or the result contiguous go with the products.
Advice heads_copied(const char* query, const char* result, const char* op = "aten::copy_") {
  const auto copied = [&](const char* count) {
    return advised_row("void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda>()", op,
                       std::string("n=") + count + ",inputs=1", "bf16");
  };
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(product("M=8192,N=1024,K=8192"), 5e5);
               program.kernel(copied(query), 1e5);
               program.kernel(product("B=128,M=1024,N=1024,K=64"), 2e5);
               program.kernel(softmax("rows=131072,cols=1024"), 4e5);
               program.kernel(product("B=128,M=1024,N=64,K=1024"), 2e5);
               program.kernel(copied(result), 1e5);
             })
      .advice();
}

TEST(FlashAttention, CopiesOfItsOperandsGoToo) {
  const Interval3 without = share_of(heads_copied("8388609", "8388609"), "flash_attention"),
                  with = share_of(heads_copied("8388608", "8388608"), "flash_attention");
  EXPECT_NEAR(with.mid - without.mid, 0.9 * 2e5 / 1.5e6, 0.01);
  EXPECT_NEAR(with.low, without.low, 0.01);
  EXPECT_NEAR(share_of(heads_copied("8388608", "8388609"), "flash_attention").mid - without.mid,
              0.9 * 1e5 / 1.5e6, 0.01);
  // What computes is no copy.
  EXPECT_NEAR(share_of(heads_copied("8388608", "8388608", "aten::mul"), "flash_attention").mid,
              without.mid, 0.01);
}

}  // namespace
}  // namespace purlin::analyze
