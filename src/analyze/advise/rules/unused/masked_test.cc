// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

constexpr const char* kSdpaKernel =
    "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64";

// 550 GFLOP of attention in 2 ms, within an op whose shape says what mask it has.
Advice masked_attention(const std::string& extents, const std::string& mask) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               with_inputs(program, "aten::scaled_dot_product_attention", (extents + mask).c_str(),
                           [&](Program& inner) {
                             inner.kernel(advised_row(kSdpaKernel, "aten::_cudnn_attention_forward",
                                                      extents, "bf16"),
                                          2e6);
                           });
             })
      .advice();
}
constexpr const char* kManyPositions = "B=2,H=16,Sq=8192,Sk=8192,D=64";

TEST(Masked, OneMaskForAllSamplesIsAPattern) {
  const Advice advice = masked_attention(kManyPositions, ",mask=67108864");
  const Interval3 share = share_of(advice, "reduce_problem");
  const double flops = 2.0 * 2 * 16 * 8192 * 8192 * 128;
  EXPECT_NEAR(share.mid, 1 - flops * 0.3 / (0.4 * kPeak) * 1e9 / 2e6, 0.03);
  EXPECT_NEAR(share.low, 1 - flops * 0.5 / (0.25 * kPeak) * 1e9 / 2e6, 0.05);
  EXPECT_TRUE(says(find(advice, "reduce_problem"), "one mask for 2 samples of 16 heads"));
}

// What is added may be a bias, which removes nothing.
TEST(Masked, AnAddedMaskPromisesNothingForSure) {
  const Advice advice = masked_attention(kManyPositions, ",bias=67108864");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->confidence, "D");
  EXPECT_LE(one->saved_share.low, 0.01);
  EXPECT_GT(one->saved_share.mid, 0.5);
}

TEST(Masked, IsSilentOtherwise) {
  EXPECT_EQ(find(masked_attention(kManyPositions, ""), "reduce_problem"), nullptr);
  EXPECT_EQ(find(masked_attention(kManyPositions, ",causal=1"), "reduce_problem"), nullptr);
  // Of each sample, of which there are too few to be padded, or of each head.
  EXPECT_EQ(find(masked_attention(kManyPositions, ",mask=134217728"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(masked_attention(kManyPositions, ",bias=1073741824"), "reduce_problem"), nullptr);
  // Of the keys alone: padding.
  EXPECT_EQ(find(masked_attention(kManyPositions, ",mask=16384"), "reduce_problem"), nullptr);
  // Too short to leave tiles out.
  EXPECT_EQ(
      find(masked_attention("B=2048,H=16,Sq=256,Sk=256,D=64", ",mask=65536"), "reduce_problem"),
      nullptr);
}

// A mask for each sample: of its keys, or of all its scores.
TEST(Masked, OneMaskForEachSampleIsPadding) {
  for (const char* mask : {",mask=32768", ",mask=16777216"}) {
    const Advice advice = masked_attention("B=64,H=12,Sq=512,Sk=512,D=64", mask);
    const Intervention* one = find(advice, "reduce_problem");
    ASSERT_NE(one, nullptr) << mask;
    EXPECT_NEAR(one->saved_share.mid, 0.25, 0.02);
    EXPECT_LE(one->saved_share.low, 0.01);
    EXPECT_EQ(one->confidence, "D");
    EXPECT_TRUE(says(one, "64 samples of 512 positions"));
  }
  // One token against a cache; a mask that is added; a mask for each head.
  for (const char* mask : {",bias=16777216", ",mask=201326592"})
    EXPECT_EQ(find(masked_attention("B=64,H=12,Sq=512,Sk=512,D=64", mask), "reduce_problem"),
              nullptr);
  EXPECT_EQ(find(masked_attention("B=64,H=12,Sq=1,Sk=512,D=64", ",mask=32768"), "reduce_problem"),
            nullptr);
}

}  // namespace
}  // namespace purlin::analyze
