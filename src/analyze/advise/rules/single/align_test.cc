// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

Advice convolution_behind(const char* first) {
  const auto of_library = [](const char* name) {
    return advised_row(name, "aten::cudnn_convolution", "", "bf16");
  };
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < 2; ++i) {
                 program.kernel(of_library(first), 100'000);
                 program.kernel(
                     of_library("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc"),
                     100'000);
               }
             })
      .advice();
}

// The library pads the channels at each call: images that are padded once need none of it.
TEST(AlignDimensions, ChannelsThatTheLibraryPads) {
  const Advice advice =
      convolution_behind("void nhwcAddPaddingKernel<__nv_bfloat16, __nv_bfloat16, float, true>()");
  const Intervention* one = find(advice, "align_dimensions");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->saved_share.mid, 0.5 * 0.95, 0.02);
  EXPECT_TRUE(says(one, "2 launches a step"));
  EXPECT_EQ(
      find(convolution_behind("void cudnn::nchwToNhwcKernel<__nv_bfloat16>()"), "align_dimensions"),
      nullptr);
}

}  // namespace
}  // namespace purlin::analyze
