// SPDX-License-Identifier: Apache-2.0
// Copies and conversions next to what other rules take: masks out of place, clones in chains,
// filters that are cast.
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// The scores are copied before they are masked, then converted for the softmax.
TEST(Copies, OfScoresGoWithTheAttention) {
  const Advice advice =
      Program()
          .steps(kSteps,
                 [](Program& program) {
                   for (int layer = 0; layer < 4; ++layer) {
                     program.kernel(product("B=128,M=4096,N=4096,K=128"), 1e6);
                     program.copy("d2d", 2'000'000, 2ULL * 128 * 4096 * 4096);
                     program.kernel(functor("MaskedFill", "n=2147483648,inputs=1", "bf16"), 2e6);
                     program.kernel(softmax("rows=524288,cols=4096"), 2e6);
                     program.kernel(product("B=128,M=4096,N=128,K=4096"), 1e6);
                   }
                 })
          .advice();
  const Intervention* one = find(advice, "flash_attention");
  ASSERT_NE(one, nullptr);
  const double work = 2 * 2 * 128.0 * 4096 * 4096 * 128 / (0.45 * kPeak) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - work / 8e6, 0.02);
  EXPECT_EQ(find(advice, "remove_copies"), nullptr);  // the copies are taken
}

TEST(Copies, AnotherCopyInTheChainStays) {
  const Advice advice = Program()
                            .steps(kSteps,
                                   [](Program& program) {
                                     program.kernel(product("B=128,M=4096,N=4096,K=128"), 1e6);
                                     program.copy("d2d", 20'000, 1 << 20);  // no scores
                                     program.kernel(softmax("rows=524288,cols=4096"), 2e6);
                                     program.kernel(product("B=128,M=4096,N=128,K=4096"), 1e6);
                                   })
                            .advice();
  ASSERT_NE(find(advice, "flash_attention"), nullptr);
  const double work = 2 * 2 * 128.0 * 4096 * 4096 * 128 / (0.45 * kPeak) * 1e9;
  EXPECT_NEAR(share_of(advice, "flash_attention").mid, 1 - (work + 20'000) / 4.02e6, 0.02);
}

// Without the fusion, the clone alone can go.
TEST(Copies, AClonesTimeIsNamedWithinAChainToo) {
  const Advice advice = Program()
                            .steps(kSteps,
                                   [](Program& program) {
                                     program.kernel(conversion("n=67108864,inputs=1"), 120'000);
                                     program.kernel(functor("Add", "n=67108864,inputs=2"), 200'000);
                                   })
                            .advice();
  ASSERT_NE(find(advice, "fuse_pointwise"), nullptr);
  const Intervention* one = find(advice, "remove_copies");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(one->alternative);
  EXPECT_NEAR(one->saved_share.mid, 0.95 * 120 / 320, 0.02);
}

TEST(Copies, FiltersOfConvolutionsAreCastOnce) {
  const auto advice_of = [](const char* cast) {
    const KernelRow convolution = advised_row(
        "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x64x64",
        "aten::cudnn_convolution", "N=4,C=512,H=14,W=14,K=512,R=3,S=3,P=14,Q=14", "f16");
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 for (int layer = 0; layer < 4; ++layer) {
                   program.kernel(conversion(cast), 30'000);
                   program.kernel(convolution, 30'000);
                 }
               })
        .advice();
  };
  EXPECT_NEAR(share_of(advice_of("n=2359296,inputs=1,in=2359296,read=9437184,write=4718592"),
                       "cast_weights_once")
                  .mid,
              0.97 * 0.5, 0.02);
  EXPECT_EQ(
      find(advice_of("n=401408,inputs=1,in=401408,read=1605632,write=802816"), "cast_weights_once"),
      nullptr);
}

KernelRow convolution() {
  return advised_row(
      "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x64x64",
      "aten::cudnn_convolution", "N=32,C=64,H=112,W=112,K=64,R=3,S=3,P=112,Q=112", "f16");
}

TEST(Convolutions, HaveAnEpilogueToo) {
  const auto advice_of = [](const char* shape) {
    return Program()
        .steps(kSteps,
               [shape](Program& program) {
                 program.kernel(convolution(), 60'000);
                 program.kernel(functor("Add", shape, "f16"), 60'000);
                 program.kernel(functor("Clamp", shape, "f16"), 30'000);
               })
        .advice();
  };
  EXPECT_NEAR(share_of(advice_of("n=25690112,inputs=1"), "fuse_epilogue").mid, 0.57, 0.04);
  EXPECT_EQ(find(advice_of("n=1605632,inputs=1"), "fuse_epilogue"), nullptr);
}

TEST(Fills, OfKernelsCountAsWell) {
  const auto advice_of = [](double ns) {
    return Program()
        .steps(kSteps,
               [ns](Program& program) {
                 program.kernel(functor("Fill", "n=67108864,inputs=0"), ns);
                 program.kernel(functor("Add", "n=67108864,inputs=1"), 200'000);
               })
        .advice();
  };
  EXPECT_NEAR(share_of(advice_of(100'000), "remove_fills").mid, 0.5 * 100 / 300, 0.02);
  EXPECT_EQ(find(advice_of(5'000), "remove_fills"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
