// SPDX-License-Identifier: Apache-2.0
// More work than the operands ask for: all pairs written out, one-hot products, wide filters; and
// what goes with a product or a copy that another op would not need.
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

KernelRow with_op(KernelRow row, const char* op) {
  row.op = op;
  return row;
}

// 16384 vectors with 256 others of 64 elements each, or other shapes.
Advice distances(const char* op, const char* difference, const char* sums) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(with_op(functor("Add", difference), op), 500'000);
               program.kernel(with_op(functor("Pow", "n=268435456,inputs=1"), "aten::pow"),
                              500'000);
               program.kernel(reduction(sums), 500'000);
             })
      .advice();
}

TEST(PairsAndFilters, SumsOverAllPairsAreAProduct) {
  constexpr const char* kDifference = "n=268435456,inputs=2,in=1064960";
  constexpr const char* kSums = "n=268435456,out=4194304";
  const Advice advice = distances("aten::sub", kDifference, kSums);
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Compute the sums over all pairs as one product");
  const double after = 4.0 * (4 * 2 * 4194304 + 3 * 1064960) / (0.6 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - after / 1.5e6, 0.02);
  EXPECT_GT(one->saved_share.low, 0.7);
  // A sum is no product's; operands of other sizes; whole operands; a sum along another extent.
  EXPECT_EQ(find(distances("aten::add", kDifference, kSums), "reduce_problem"), nullptr);
  EXPECT_EQ(
      find(distances("aten::sub", "n=268435456,inputs=2,in=1064961", kSums), "reduce_problem"),
      nullptr);
  EXPECT_EQ(find(distances("aten::sub", "n=268435456,inputs=2", kSums), "reduce_problem"), nullptr);
  EXPECT_EQ(find(distances("aten::sub", kDifference, "n=268435456,out=1"), "reduce_problem"),
            nullptr);
}

Advice compared(const char* op, const char* sums) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(
                   with_op(functor("CompareEq", "n=268435456,inputs=2,in=1048832,write=268435456",
                                   "i64"),
                           op),
                   600'000);
               program.kernel(reduction(sums, "bool"), 800'000);
             })
      .advice();
}

TEST(PairsAndFilters, ComparisonsWithEachBinAreCounts) {
  const Advice advice = compared("aten::eq", "n=268435456,out=256");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Count by index instead of comparing all pairs");
  EXPECT_NEAR(one->saved_share.mid, 0.96, 0.02);
  EXPECT_NE(find(compared("aten::eq", "n=268435456,out=1048576"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(compared("aten::lt", "n=268435456,out=256"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(compared("aten::eq", "n=268435456,out=128"), "reduce_problem"), nullptr);
}

Advice one_hot(const char* scatter, const char* entries) {
  const std::string name =
      std::string("void at::native::_scatter_gather_elementwise_kernel<") + scatter + ">(int)";
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(functor("Fill", "n=67108864,inputs=0", "i64"), 160'000);
               program.kernel(advised_row(name.c_str(), "aten::scatter_", entries, "i64"), 6'000);
               program.kernel(conversion("n=67108864,inputs=1"), 290'000);
               program.kernel(product("M=8192,N=512,K=8192"), 1'300'000);
             })
      .advice();
}

TEST(PairsAndFilters, AProductWithAOneHotMatrixIsALookUp) {
  constexpr const char* kFills = "_cuda_scatter_fill_internal_kernel<1>";
  const Advice advice = one_hot(kFills, "indices=8192,cols=1,rows=67108864");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Look rows up instead of multiplying by a one-hot matrix");
  EXPECT_GT(one->saved_share.mid, 0.97);
  EXPECT_EQ(find(one_hot(kFills, "indices=65536,cols=1,rows=67108864"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(one_hot(kFills, "indices=8192,cols=1,rows=1048576"), "reduce_problem"), nullptr);
  EXPECT_EQ(
      find(one_hot("_cuda_scatter_gather_internal_kernel<1>", "indices=8192,cols=1,rows=67108864"),
           "reduce_problem"),
      nullptr);
}

Advice filtered(const char* shape) {
  const KernelRow row =
      advised_row("void at::native::conv_depthwise2d_forward_kernel_generic<float, int>()",
                  "aten::_conv_depthwise2d", shape, "f32");
  return Program()
      .steps(kSteps, [&](Program& program) { program.kernel(row, 2'000'000); })
      .advice();
}

TEST(PairsAndFilters, AWideFilterOfPicturesMayBeTwo) {
  const Advice advice =
      filtered("N=16,C=3,H=512,W=512,K=3,R=21,S=21,P=512,Q=512,groups=3,padding=10");
  EXPECT_NEAR(share_of(advice, "reduce_problem").mid, 1 - 3 * 42 / 441.0, 0.02);
  EXPECT_EQ(find(advice, "tensor_cores"), nullptr);  // it has no product of matrices
  for (const char* shape : {"N=16,C=3,H=512,W=512,K=3,R=5,S=5,P=512,Q=512,groups=3,padding=2",
                            "N=16,C=96,H=512,W=512,K=96,R=21,S=21,P=512,Q=512,groups=96,padding=10",
                            "N=16,C=3,H=512,W=512,K=64,R=21,S=21,P=512,Q=512,padding=10"})
    EXPECT_EQ(find(filtered(shape), "reduce_problem"), nullptr) << shape;
}

Advice normed(const char* norm, const char* shape) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < 4; ++i) {
                 program.kernel(
                     advised_row("sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc",
                                 "aten::cudnn_convolution",
                                 "N=16,C=128,H=80,W=80,K=128,R=3,S=3,P=80,Q=80,padding=1", "f16"),
                     50'000);
                 program.kernel(conversion("n=128,inputs=1,write=512"), 1'700);
                 program.kernel(advised_row(norm, "aten::native_batch_norm", shape, "f16"), 30'000);
                 program.kernel(functor("Clamp", "n=13107200,inputs=1", "f16"), 17'000);
               }
             })
      .advice();
}

TEST(PairsAndFilters, BatchNormsOfInferenceGoIntoTheFilters) {
  constexpr const char* kKnown =
      "void at::native::batch_norm_transform_input_channels_last_kernel<c10::Half>()";
  const Advice advice = normed(kKnown, "rows=128,cols=102400,params=256");
  const Intervention* one = find(advice, "fuse_epilogue");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Fold the batch norms into the convolutions");
  EXPECT_NEAR(one->saved_share.mid, (0.3 * 30'000 + 1'700) / 98'700.0, 0.03);
  const auto folds = [](const Advice& of) {
    return std::any_of(of.interventions.begin(), of.interventions.end(), [](const auto& known) {
      return known.title == "Fold the batch norms into the convolutions";
    });
  };
  EXPECT_TRUE(folds(advice));
  EXPECT_FALSE(folds(normed("void at::native::batch_norm_collect_statistics_kernel<float>()",
                            "rows=128,cols=102400,params=256")));
  EXPECT_FALSE(folds(normed(kKnown, "rows=64,cols=102400,params=128")));
}

}  // namespace
}  // namespace purlin::analyze
