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

}  // namespace
}  // namespace purlin::analyze
