// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin::analyze {
namespace {

Advice patched(const char* shape, double ns) {
  const KernelRow convolution = advised_row(
      "void implicit_convolveNd_sgemm<__nv_bfloat16, 3, 128, 6, 7, 3, 3, 5, 1, false, false, "
      "true>(int)",
      "aten::cudnn_convolution", shape, "bf16");
  return Program()
      .steps(kSteps, [&](Program& program) { program.kernel(convolution, ns); })
      .advice();
}

TEST(Patches, OnePatchASampleIsAProduct) {
  const Advice advice = patched(
      "N=16384,C=3,D=2,H=14,W=14,K=1280,T=2,R=14,S=14,Z=1,P=1,Q=1,stride_D=2,stride_H=14,"
      "stride_W=14",
      2e6);
  // 2 M N K at half of the peak is 100 us.
  const double after = 2 * 16384.0 * 1280 * 1176 / (0.5 * kPeak) * 1e9;
  EXPECT_NEAR(share_of(advice, "reduce_problem").mid, 1 - after / 2e6, 0.02);
  EXPECT_TRUE(says(find(advice, "reduce_problem"), "a product of M=16384,N=1280,K=1176"));
}

TEST(Patches, SeveralPatchesAreCopiedFirst) {
  const Advice advice = patched("N=256,C=3,H=224,W=224,K=768,R=16,S=16,P=14,Q=14,stride=16", 2e6);
  const double product = 2 * 256 * 196 * 768.0 * 768 / (0.5 * kPeak) * 1e9;
  const double copy = 2 * 2 * 256 * 196 * 768.0 / (0.5 * kBandwidth) * 1e9;
  EXPECT_NEAR(share_of(advice, "reduce_problem").mid, 1 - (product + copy) / 2e6, 0.02);
}

TEST(Patches, IsSilentOtherwise) {
  // Windows that overlap or are padded, groups, a filter of one, and a fast convolution.
  for (const char* shape : {"N=256,C=3,H=224,W=224,K=768,R=16,S=16,P=27,Q=27,stride=8",
                            "N=256,C=3,H=224,W=224,K=768,R=16,S=16,P=14,Q=14,stride=16,padding=8",
                            "N=256,C=768,H=28,W=28,K=768,R=2,S=2,P=14,Q=14,groups=768,stride=2",
                            "N=256,C=768,H=28,W=28,K=768,R=1,S=1,P=28,Q=28",
                            "N=256,C=3,H=224,W=224,K=768,R=16,S=16,P=14,Q=14"})
    EXPECT_EQ(find(patched(shape, 2e6), "reduce_problem"), nullptr) << shape;
  EXPECT_EQ(find(patched("N=256,C=3,H=224,W=224,K=768,R=16,S=16,P=14,Q=14,stride=16", 2e5),
                 "reduce_problem"),
            nullptr);
}

}  // namespace
}  // namespace purlin::analyze
