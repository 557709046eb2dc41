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

}  // namespace
}  // namespace purlin::analyze
