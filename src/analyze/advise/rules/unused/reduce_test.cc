// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

Advice sorted_then(const char* op, const char* reader) {
  const KernelRow sort = advised_row(
      "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<Policy>()", "aten::sort", "", "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int pass = 0; pass < 4; ++pass) program.kernel(sort, 100'000);
               program.op(op);
               program.kernel(functor("Div", reader), 100'000);
             })
      .advice();
}

TEST(ReduceProblem, ASortOfWhichFewAreRead) {
  const Advice advice = sorted_then("aten::slice", "n=128,inputs=1");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Find the greatest few instead of sorting all");
  EXPECT_NEAR(one->saved_share.mid, 0.7 * 0.8, 0.02);
  EXPECT_EQ(find(sorted_then("aten::view", "n=128,inputs=1"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(sorted_then("aten::slice", "n=4096000,inputs=1"), "reduce_problem"), nullptr);
}

// Every fourth position of a convolution is read, after its activation.
Advice strided(const char* op, const char* activation, const char* reader) {
  const KernelRow filters = advised_row(
      "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc", "aten::cudnn_convolution",
      "N=32,C=128,H=1,W=8192,K=128,R=1,S=9,P=1,Q=8192,padding_H=0,padding_W=4", "f16");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(filters, 120'000);
               program.kernel(functor("Clamp", activation, "f16"), 40'000);
               program.op(op);
               program.kernel(functor("Copy", reader, "f16"), 10'000);
             })
      .advice();
}

TEST(ReduceProblem, PositionsThatAStrideThrowsAway) {
  const Advice advice = strided("aten::slice", "n=33554432,inputs=1", "n=8388608,inputs=1");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "65536 of 262144"));
  // Of the activation and the product, as much is left as of the positions, at some efficiency.
  EXPECT_NEAR(one->saved_share.mid, 0.55, 0.15);
  // All are read; no selection; and an activation of two arrays, which reads something else too.
  EXPECT_EQ(
      find(strided("aten::slice", "n=33554432,inputs=1", "n=33554432,inputs=1"), "reduce_problem"),
      nullptr);
  EXPECT_EQ(
      find(strided("aten::view", "n=33554432,inputs=1", "n=8388608,inputs=1"), "reduce_problem"),
      nullptr);
  EXPECT_EQ(
      find(strided("aten::slice", "n=33554432,inputs=2", "n=8388608,inputs=1"), "reduce_problem"),
      nullptr);
}

// Nothing in the step reads the sorted array: the host takes a slice of it, or it does not.
TEST(ReduceProblem, ASortAtTheEndOfAStep) {
  const KernelRow sort = advised_row(
      "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<Policy>()", "aten::sort", "", "f16");
  const auto advice_of = [&](const char* op) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 for (int pass = 0; pass < 4; ++pass) program.kernel(sort, 100'000);
                 program.op(op);
               })
        .advice();
  };
  EXPECT_NEAR(share_of(advice_of("aten::slice"), "reduce_problem").mid, 0.7, 0.02);
  EXPECT_EQ(find(advice_of("aten::view"), "reduce_problem"), nullptr);
}

Advice rows_taken_by(const char* op, const char* shape) {
  const KernelRow select =
      advised_row("void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16>()",
                  op, shape, "bf16");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(product("M=4096,N=32000,K=1024"), 400'000);
               program.kernel(select, 10'000);
             })
      .advice();
}

TEST(ReduceProblem, ASelectionWithAKernelOfItsOwn) {
  const Advice advice = rows_taken_by("aten::index_select", "indices=8,cols=32000,rows=4096");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "8 of 4096"));
  EXPECT_TRUE(says(one, "aten::index_select"));
  const double left = 2.0 * 1024 * 32000 / (0.7 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, (400'000 - left) / 410'000, 0.02);
  // Most rows, rows of another array, and the other extent.
  for (const char* shape : {"indices=4000,cols=32000,rows=4096", "indices=8,cols=1024,rows=4096",
                            "indices=8,cols=4096,rows=32000"})
    EXPECT_EQ(find(rows_taken_by("aten::index_select", shape), "reduce_problem"), nullptr);
  EXPECT_EQ(
      find(rows_taken_by("aten::embedding", "indices=8,cols=32000,rows=4096"), "reduce_problem"),
      nullptr);
}

// Of each layer's result a few rows are added up; the next layer, if any, reads all of them.
Advice layers_of_which_rows_are_read(const char* next, const char* last = nullptr) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(product("M=16384,N=4096,K=2048"), 400'000);
               program.op("aten::slice");
               program.kernel(functor("Copy", "n=262144,inputs=1", "bf16"), 4'000);
               if (next != nullptr) program.kernel(product(next), 400'000);
               if (last == nullptr) return;
               program.kernel(product("M=16384,N=4096,K=2048"), 400'000);
               program.op("aten::slice");
               program.kernel(functor("Copy", last, "bf16"), 4'000);
             })
      .advice();
}

TEST(ReduceProblem, AResultThatTheNextProductReadsWhole) {
  EXPECT_NE(find(layers_of_which_rows_are_read(nullptr), "reduce_problem"), nullptr);
  EXPECT_EQ(find(layers_of_which_rows_are_read("M=16384,N=2048,K=4096"), "reduce_problem"),
            nullptr);
  // The last layer's result too, which the program may return; but not that of other readers.
  EXPECT_EQ(find(layers_of_which_rows_are_read("M=16384,N=2048,K=4096", "n=262144,inputs=1"),
                 "reduce_problem"),
            nullptr);
  EXPECT_NE(find(layers_of_which_rows_are_read("M=16384,N=2048,K=4096", "n=131072,inputs=1"),
                 "reduce_problem"),
            nullptr);
  // A product of the rows that were selected.
  EXPECT_NE(find(layers_of_which_rows_are_read("M=64,N=2048,K=4096"), "reduce_problem"), nullptr);
}

// Images that are cut after a convolution: the layout of the whole ones was changed for nothing.
TEST(ReduceProblem, ChangesOfLayoutShrinkWithTheConvolution) {
  const auto layout = [](const char* name) {
    return advised_row(name, "aten::cudnn_convolution", "", "f16");
  };
  const Advice advice =
      Program()
          .steps(kSteps,
                 [&](Program& program) {
                   program.kernel(layout("cudnn::nchwToNhwcKernel<__half>()"), 300'000);
                   program.kernel(
                       advised_row("sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc",
                                   "aten::cudnn_convolution",
                                   "N=16,C=32,H=512,W=512,K=32,R=3,S=3,P=512,Q=512", "f16"),
                       380'000);
                   program.kernel(layout("cudnn::nhwcToNchwKernel<__half>()"), 280'000);
                   program.op("aten::slice");
                   program.kernel(functor("Mul", "n=8388608,inputs=1", "f16"), 26'000);
                 })
          .advice();
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "changes of layout and pointwise kernels around it, of whole images"));
  EXPECT_GT(one->saved_share.mid, 0.8);
}

Advice table_gradient(const char* shape, const char* head = "M=64,N=64,K=64") {
  const double pass = 4.0 * (1 << 20) * 64 / kBandwidth * 1e9;
  const KernelRow fill = advised_row(
      "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>()",
      "aten::zero_", "", "f32");
  const KernelRow update = advised_row(
      "void at::native::multi_tensor_apply_kernel<at::native::BinaryOpListAlphaFunctor<float>>()",
      "aten::_foreach_add_", "", "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(fill, pass);
               program.kernel(advised_row("void compute_grad_weight<float>()",
                                          "aten::embedding_dense_backward", shape, "f32"),
                              8'000);
               program.kernel(update, 3 * pass);
               program.kernel(product(head), 5'000);
             })
      .advice();
}

TEST(ReduceProblem, TheGradientOfARarelyReadTable) {
  const Advice advice = table_gradient("indices=8192,cols=64,rows=1048576,backward=1");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "a step reads 0.78% of"));
  const double passes = 4 * 4.0 * (1 << 20) * 64 / kBandwidth * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 0.9 * passes / (passes + 13'000), 0.04);
  EXPECT_EQ(
      find(table_gradient("indices=524288,cols=64,rows=1048576,backward=1"), "reduce_problem"),
      nullptr);
  // The table is the weights of a product too.
  EXPECT_EQ(
      find(table_gradient("indices=8192,cols=64,rows=1048576,backward=1", "M=8192,N=1048576,K=64"),
           "reduce_problem"),
      nullptr);
}

Advice read_of_product(const char* op, const char* shape) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(product("M=8192,N=8192,K=8192"), 2e6);
               program.op(op);
               program.kernel(reduction(shape), 5'000);
             })
      .advice();
}

TEST(ReduceProblem, OnlyTheDiagonalOfAProductIsRead) {
  const Advice advice = read_of_product("aten::trace", "n=8192,out=1");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Compute the diagonal alone, not the product");
  const double left = 3 * 2.0 * 8192 * 8192 / (0.7 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 2.005e6, 0.02);
  EXPECT_EQ(find(read_of_product("aten::view", "n=8192,out=1"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(read_of_product("aten::trace", "n=4096,out=1"), "reduce_problem"), nullptr);
}

// The program returns a view of the diagonal: no kernel reads the product.
TEST(ReduceProblem, TheDiagonalOfAProductIsReturned) {
  const auto returned = [](const char* op, const char* shape) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 program.kernel(product(shape), 2'000'000);
                 program.op(op);
               })
        .advice();
  };
  const Advice advice = returned("aten::diagonal", "M=8192,N=8192,K=8192");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Compute the diagonal alone, not the product");
  EXPECT_EQ(find(returned("aten::view", "M=8192,N=8192,K=8192"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(returned("aten::diagonal", "M=8192,N=4096,K=8192"), "reduce_problem"), nullptr);
}

// A hundredth of what is sorted is few, however many these are.
TEST(ReduceProblem, ASmallPartOfALargeSort) {
  const auto sliced = [](const char* sorted) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 with_inputs(program, "aten::sort", sorted, [](Program& inner) {
                   inner.kernel(
                       advised_row("DeviceRadixSortOnesweepKernel", "aten::sort", "", "f32"),
                       400'000);
                 });
                 program.op("aten::slice");
                 program.kernel(reduction("n=83872,out=32"), 4'000);
               })
        .advice();
  };
  const Advice advice = sliced("32x262144,,");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Find the greatest few instead of sorting all");
  EXPECT_EQ(find(sliced("32x4096,,"), "reduce_problem"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
