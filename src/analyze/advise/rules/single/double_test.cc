// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

Advice of_type(const char* dtype) {
  return Program()
      .steps(kSteps,
             [dtype](Program& program) {
               program.kernel(functor("Mul", "n=67108864,inputs=1", dtype), 300'000);
               program.kernel(product("M=4096,N=4096,K=4096"), 200'000);
             })
      .advice();
}

TEST(LeaveFloat64, HalfOfTheBytesGo) {
  const Advice advice = of_type("f64");
  const Intervention* one = find(advice, "leave_float64");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->saved_share.mid, 0.6 * (1 - 0.53), 0.02);
  EXPECT_FALSE(one->guard.empty());
  EXPECT_EQ(find(of_type("f32"), "leave_float64"), nullptr);
}

TEST(LeaveFloat64, ComplexNumbersHoldTwoOfThem) {
  EXPECT_NEAR(share_of(of_type("c128"), "leave_float64").mid, 0.6 * (1 - 0.53), 0.02);
  EXPECT_EQ(find(of_type("c64"), "leave_float64"), nullptr);
}

// An H200 multiplies as fast in 64 bits as in 32 without TF32: only that gains.
TEST(LeaveFloat64, AProductAtTheRateOfItsUnitsGainsByTf32Only) {
  const double n = 4096, at_80 = 2 * n * n * n / (0.8 * 67e12) * 1e9;
  KernelRow row = product("M=4096,N=4096,K=4096", "sm90_xmma_gemm_f64f64_f64f64_f64_nt_n_tensor");
  row.dtype = "f64";
  const Advice advice =
      Program().steps(kSteps, [&](Program& program) { program.kernel(row, at_80); }).advice();
  const Interval3 share = share_of(advice, "leave_float64");
  EXPECT_LT(share.mid, 0.1);
  EXPECT_GT(share.high, 0.7);
}

}  // namespace
}  // namespace purlin::analyze
