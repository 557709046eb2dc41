// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// Twelve tensors, four ops each; the host sets the pace.
Advice updated(const char* backward, std::initializer_list<int> sizes) {
  const std::vector<int> lengths = sizes;
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.op(backward);
               program.kernel(product("M=4096,N=4096,K=4096"), 200'000);
               for (std::size_t i = 0; i < 12; ++i) {
                 const std::string n =
                     "n=" + std::to_string(lengths[i % lengths.size()]) + ",inputs=";
                 program.late_kernel(functor("Mul", n + "1"), 2'000, 10'000);
                 program.late_kernel(functor("Add", n + "2"), 2'000, 10'000);
                 program.late_kernel(functor("Sign", n + "1"), 2'000, 10'000);
                 program.late_kernel(functor("Sub", n + "2"), 2'000, 10'000);
               }
             })
      .advice();
}

constexpr const char* kBackward = "autograd::engine::evaluate_function: MmBackward0";

TEST(FusedOptimizer, AnUpdateWrittenTensorByTensor) {
  const Advice advice = updated(kBackward, {256, 65536, 1024, 196608});
  const Intervention* one = find(advice, "fused_optimizer");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Update all parameters with one launch for each op");
  EXPECT_TRUE(says(one, "12 tensors of 4 launches"));
  // 48 launches of 12 us become 4; a product of 200 us remains.
  const double all = 48 * 12.0;
  EXPECT_NEAR(one->saved_share.mid, (all - 4 * 12) / (all + 200), 0.08);
  // Without a backward pass, and with tensors of one size: a loop over time, or layers.
  EXPECT_EQ(find(updated("aten::mm", {256, 65536, 1024, 196608}), "fused_optimizer"), nullptr);
  EXPECT_EQ(find(updated(kBackward, {65536}), "fused_optimizer"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
