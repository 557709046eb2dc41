// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

KernelRow transform(const char* name, const char* op) { return advised_row(name, op, "", ""); }

// Forward of real numbers, the second half of the spectrum, a product, and back.
Advice filtered(const char* fills, const char* part) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(transform("void vector_fft<16384u>()", "aten::_fft_r2c"), 100'000);
               program.kernel(transform(fills, "aten::_fft_r2c"), 100'000);
               program.kernel(functor("Mul", "n=16777216,inputs=2", "c64"), 100'000);
               program.kernel(transform("void vector_fft<32768u>()", "aten::_fft_c2c"), 100'000);
               program.op(part);
             })
      .advice();
}

TEST(ReduceProblem, TheSpectrumOfRealNumbersIsHalfOfIt) {
  const char* fills = "void at::native::_fft_conjugate_copy_kernel<c10::complex<float> >()";
  const Advice advice = filtered(fills, "aten::real");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->saved_share.mid, (1 + 2 * 0.4) / 4, 0.02);
  EXPECT_TRUE(says(one, "1 launch a step"));
  // The result stays complex, or the input was.
  EXPECT_EQ(find(filtered(fills, "aten::abs"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(filtered("void vector_fft<16384u>()", "aten::real"), "reduce_problem"), nullptr);
}

// An odd length of real numbers: packed, two passes, unpacked; and what is not of a transform.
Advice transformed(const char* pass, double others, double beside = 0) {
  const char* around = "void preprocess_kernel<float, unsigned int, (loadstore_modifier_t)2>()";
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(transform(around, "aten::_fft_r2c"), 20'000);
               program.kernel(transform(pass, ""), 40'000);
               program.kernel(transform(pass, ""), 40'000);
               if (beside > 0) program.kernel(transform("void regular_fft<512u>()", ""), beside);
               program.kernel(functor("Mul", "n=16777216,inputs=2", "c64"), others);
             })
      .advice();
}

TEST(ReduceProblem, ATransformOfAnAwkwardLengthTakesTwoOfTwiceTheLength) {
  const char* awkward = "void multi_bluestein_fft<25u, EPT<5u>, 64u>()";
  const Advice advice = transformed(awkward, 100'000);
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Transform at a length of small primes");
  EXPECT_TRUE(says(one, "3 launches a step"));
  EXPECT_NEAR(one->saved_share.mid, 0.78 * 0.5, 0.02);
  EXPECT_NEAR(one->saved_share.low, 0.5 * 0.5, 0.02);
  EXPECT_NEAR(one->saved_share.high, 0.9 * 0.5, 0.04);
  // A transform of a good length next to it is not counted.
  const Advice two = transformed(awkward, 50'000, 50'000);
  EXPECT_NEAR(find(two, "reduce_problem")->saved_share.mid, 0.78 * 0.5, 0.02);
  // A good length, and too little of the time.
  EXPECT_EQ(find(transformed("void regular_fft<125u, EPT<5u>>()", 100'000), "reduce_problem"),
            nullptr);
  EXPECT_EQ(find(transformed(awkward, 2'400'000), "reduce_problem"), nullptr);
}

Advice convolved(const char* shape, double ns) {
  const KernelRow row = advised_row("void conv_depthwise2d_forward_kernel_generic<float>()",
                                    "aten::_conv_depthwise2d", shape, "f32");
  return Program().steps(kSteps, [&](Program& program) { program.kernel(row, ns); }).advice();
}

TEST(ReduceProblem, ALongFilterIsAProductOfSpectra) {
  const char* shape = "N=8,C=64,H=1,W=33791,K=64,R=1,S=1024,P=1,Q=32768,groups=64";
  const Advice advice = convolved(shape, 10e6);
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  // Signals of 8 x (64 + 64) + 64 rows pass ten times, at 0.4 of the bandwidth.
  const double left = 8'000 + 10 * 4.0 * 1088 * (33791 + 1024) / (0.4 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 10e6, 0.02);
  // A short filter, one that leaves out positions, and one whose products are fast already.
  EXPECT_EQ(find(convolved("N=8,C=64,H=1,W=32799,K=64,R=1,S=32,P=1,Q=32768,groups=64", 10e6),
                 "reduce_problem"),
            nullptr);
  EXPECT_EQ(find(convolved("N=8,C=64,H=1,W=33791,K=64,R=1,S=1024,P=1,Q=512,groups=64", 10e6),
                 "reduce_problem"),
            nullptr);
  EXPECT_EQ(find(convolved(shape, 60e3), "reduce_problem"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
