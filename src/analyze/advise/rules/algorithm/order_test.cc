// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace purlin::analyze {
namespace {

Advice chained(const char* op, const char* first, const char* second) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (const auto& [shape, ns] : {std::pair{first, 400'000.0}, {second, 20'000.0}})
                 with_inputs(program, op, "",
                             [&](Program& inner) { inner.kernel(product(shape), ns); });
             })
      .advice();
}

TEST(ReduceProblem, AProductThatMeetsOnlyAFewVectors) {
  const Advice advice = chained("aten::matmul", "M=4096,N=4096,K=4096", "M=4096,N=16,K=4096");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Multiply in the cheaper order");
  const double left = 2 * 2.0 * (4096.0 * 4096 + 2 * 4096 * 16) / (0.6 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 420'000, 0.02);
  // The vectors come from the left.
  EXPECT_NE(
      find(chained("aten::matmul", "M=4096,N=4096,K=2048", "M=8,N=4096,K=4096"), "reduce_problem"),
      nullptr);
}

// Attention without a softmax, divided by the sums of its scores.
TEST(ReduceProblem, SumsOverAProductThatNeedNotBe) {
  const auto saved = [](const char* sum) {
    const Advice advice =
        Program()
            .steps(kSteps,
                   [&](Program& program) {
                     with_inputs(program, "aten::matmul", "", [](Program& inner) {
                       inner.kernel(product("B=128,M=4096,N=4096,K=64"), 1'000'000);
                     });
                     with_inputs(program, "aten::matmul", "", [](Program& inner) {
                       inner.kernel(product("B=128,M=4096,N=64,K=4096"), 1'000'000);
                     });
                     program.kernel(reduction(sum, "bf16"), 1'000'000);
                   })
            .advice();
    return share_of(advice, "reduce_problem");
  };
  EXPECT_GT(saved("n=2147483648,out=524288").mid, 0.9);
  EXPECT_NEAR(saved("n=1073741824,out=524288").mid, 0.64, 0.03);  // of another array
}

TEST(ReduceProblem, ProductsInTheirCheaperOrderAreLeftAlone) {
  // As many vectors as rows; the sizes do not fit; a layer, which may read the input of the first.
  for (const auto& [op, first, second] :
       {std::tuple{"aten::matmul", "M=4096,N=4096,K=4096", "M=4096,N=4096,K=4096"},
        {"aten::matmul", "M=4096,N=4096,K=4096", "M=2048,N=16,K=2048"},
        {"aten::linear", "M=4096,N=1024,K=1024", "M=4096,N=16,K=1024"},
        {"aten::matmul", "M=4096,N=16,K=4096", "M=4096,N=16,K=16"}})
    EXPECT_EQ(find(chained(op, first, second), "reduce_problem"), nullptr) << first << second;
}

Advice enlarged(const char* filter, const char* image = "16x256x64x64") {
  const KernelRow resize = advised_row("void upsample_bilinear2d_out_frame<c10::Half>()",
                                       "aten::upsample_bilinear2d", "", "f16");
  const KernelRow scores = advised_row("nvjet_sm90_hsh_384x24_64x4_2x1_v_ssched_bz_NNT",
                                       "aten::cudnn_convolution", filter, "f16");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               with_inputs(program, "aten::upsample_bilinear2d", image,
                           [&](Program& inner) { inner.kernel(resize, 1'600'000); });
               program.kernel(scores, 160'000);
             })
      .advice();
}

TEST(ReduceProblem, MapsAreScoredBeforeTheyAreEnlarged) {
  const Advice advice = enlarged("N=16,C=256,H=256,W=256,K=16,R=1,S=1,P=256,Q=256");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Score first, enlarge after");
  const double left = 1'600'000.0 / 16 + 160'000.0 / 16 + 4'000;
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 1'760'000, 0.01);
  EXPECT_TRUE(says(one, "16 times the positions"));
  // A larger filter, more maps than before, and maps that are not enlarged.
  for (const char* filter : {"N=16,C=256,H=256,W=256,K=16,R=3,S=3,P=256,Q=256",
                             "N=16,C=256,H=256,W=256,K=512,R=1,S=1,P=256,Q=256",
                             "N=16,C=256,H=64,W=64,K=16,R=1,S=1,P=64,Q=64"})
    EXPECT_EQ(find(enlarged(filter), "reduce_problem"), nullptr) << filter;
}

Advice repeated(const char* op, const char* from, const char* layer = "M=65536,N=512,K=384") {
  const KernelRow joined =
      advised_row("void CatArrayBatchedCopy<float>()", "aten::cat", "n=25165824,inputs=1", "f32");
  KernelRow row = product(layer);
  row.dtype = "f32";
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               with_inputs(program, op, from, [](Program&) {});
               program.kernel(joined, 75'000);
               program.kernel(row, 540'000);
             })
      .advice();
}

TEST(ReduceProblem, RowsAreMultipliedBeforeTheyAreRepeated) {
  const Advice advice = repeated("aten::expand", "64x1x256");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Multiply each distinct row once, repeat after");
  const double left = 2 * 4.0 * 65536 * 512 / (0.6 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 615'000, 0.02);
  EXPECT_TRUE(says(one, "25.2 M elements, 16.4 k distinct ones"));
  EXPECT_EQ(find(repeated("aten::view", "64x1x256"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(repeated("aten::expand", "65536x384"), "reduce_problem"), nullptr);
  EXPECT_EQ(find(repeated("aten::expand", "64x1x256", "M=65536,N=512,K=128"), "reduce_problem"),
            nullptr);
}

// Each layer counts with its own distinct rows, not with those of the last one.
TEST(ReduceProblem, LayersOfRepeatedRowsAreCountedApart) {
  const auto layer = [](Program& program, const char* from, const char* count, const char* shape) {
    const KernelRow joined =
        advised_row("void CatArrayBatchedCopy<float>()", "aten::cat", count, "f32");
    KernelRow row = product(shape);
    row.dtype = "f32";
    with_inputs(program, "aten::expand", from, [](Program&) {});
    program.kernel(joined, 75'000);
    program.kernel(row, 540'000);
  };
  const auto both = [&](bool first_is_small) {
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 for (const bool small : {first_is_small, !first_is_small})
                   layer(program, small ? "64x1x256" : "8192x1x512",
                         small ? "n=25165824,inputs=1" : "n=33554432,inputs=1",
                         small ? "M=65536,N=512,K=384" : "M=65536,N=512,K=512");
               })
        .advice();
  };
  const auto saved = [](const Advice& advice) {
    double out = 0;
    for (const Intervention& one : advice.interventions)
      if (one.title == "Multiply each distinct row once, repeat after") out += one.saved_ns.mid;
    return out;
  };
  EXPECT_GT(saved(both(true)), 0);
  EXPECT_NEAR(saved(both(true)), saved(both(false)), 0.001 * saved(both(false)));
}

Advice inverted(const char* op, const char* solved, const char* next) {
  const KernelRow factors = advised_row("void getrf_pivot<float>()", "aten::linalg_lu_factor_ex",
                                        "", "f32"),
                  sides =
                      advised_row("void kernel_trsm<float>()", "aten::linalg_lu_solve", "", "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               with_inputs(program, op, "3072x3072", [&](Program& inner) {
                 inner.within("aten::linalg_lu_factor_ex",
                              [&](Program& inmost) { inmost.kernel(factors, 600'000); });
                 inner.within(solved, [&](Program& inmost) { inmost.kernel(sides, 350'000); });
               });
               program.wait();  // the error of the factors is read
               program.kernel(product(next), 50'000);
             })
      .advice();
}

TEST(ReduceProblem, AnInverseIsOnlyMultiplied) {
  const Advice advice = inverted("aten::linalg_inv", "aten::linalg_lu_solve", "M=3072,N=16,K=3072");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Solve with the factors instead of the inverse");
  EXPECT_NEAR(one->saved_share.mid, 0.6 * 0.4, 0.03);
  EXPECT_TRUE(says(one, "3072 rows, 16 right-hand sides"));
  EXPECT_EQ(find(inverted("aten::linalg_inv", "aten::linalg_lu_solve", "M=1024,N=16,K=1024"),
                 "reduce_problem"),
            nullptr);
  EXPECT_EQ(find(inverted("aten::linalg_solve", "aten::linalg_lu_solve", "M=3072,N=16,K=3072"),
                 "reduce_problem"),
            nullptr);
}

Advice put_by_index(const char* kernel) {
  const KernelRow sort = advised_row(
      "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<Policy>()", "aten::sort", "", "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               with_inputs(program, "aten::_index_put_impl_", "65536x8,1048576x8",
                           [&](Program& inner) {
                             for (int i = 0; i < 4; ++i) inner.kernel(sort, 50'000);
                             inner.kernel(advised_row(kernel, "aten::_index_put_impl_", "", "f32"),
                                          300'000);
                           });
             })
      .advice();
}

TEST(ReduceProblem, ASumByIndexThatSorts) {
  const Advice advice = put_by_index("void indexing_backward_kernel_small_stride<float>()");
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Add by index without a sort");
  const double left = 13.0 * 8 * (1 << 20) / (0.4 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 500'000, 0.03);
  // A plain assignment does not add.
  EXPECT_EQ(find(put_by_index("void index_elementwise_kernel<float>()"), "reduce_problem"),
            nullptr);
}

Advice added_by_index(const char* shape, double ns) {
  const KernelRow row =
      advised_row("void indexFuncLargeIndex<float, long>()", "aten::index_add_", "", "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               with_inputs(program, "aten::index_add_", shape,
                           [&](Program& inner) { inner.kernel(row, ns); });
             })
      .advice();
}

TEST(ReduceInBlocks, AtomicsOntoAFewPlaces) {
  const Advice advice = added_by_index("1024,4194304,4194304", 1'000'000);
  const Intervention* one = find(advice, "reduce_in_blocks");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Sum by segments instead of atomics onto a few places");
  const double left = 12.0 * (1 << 22) / (0.4 * kBandwidth) * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 1'000'000, 0.02);
  EXPECT_TRUE(says(one, "4.19 M values into 1.02 k places"));
  // Many places; and as fast as its bytes.
  EXPECT_EQ(find(added_by_index("262144,4194304,4194304", 1'000'000), "reduce_in_blocks"), nullptr);
  EXPECT_EQ(find(added_by_index("1024,4194304,4194304", 30'000), "reduce_in_blocks"), nullptr);
}

// Two ops of linear algebra in a step, each with the factors of its matrix and what follows.
Advice factorised(const char* second, const char* shape, int times = 1) {
  const KernelRow factors = advised_row("void getrf_pivot<float>()", "aten::linalg_lu_factor_ex",
                                        "", "f32"),
                  rest = advised_row("void trsm_kernel<float>()", "aten::linalg_solve", "", "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < times; ++i)
                 for (const auto& [op, extents] :
                      {std::pair{"aten::linalg_slogdet", "1024x1024"}, {second, shape}})
                   with_inputs(program, op, extents, [&](Program& inner) {
                     inner.kernel(factors, 100'000);
                     inner.kernel(rest, 50'000);
                   });
             })
      .advice();
}

TEST(ReuseResult, OneMatrixThatTwoOpsFactorise) {
  const Advice advice = factorised("aten::linalg_solve", "1024x1024,1024x8");
  const Intervention* one = find(advice, "reuse_result");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Factorise the matrix once");
  EXPECT_NEAR(one->saved_share.mid, 0.9 / 3, 0.02);
  EXPECT_GT(one->saved_share.high, 1.0 / 3 - 0.01);
  // By ops of one name it is more doubtful: the low estimate is 0.
  EXPECT_LE(share_of(factorised("aten::linalg_slogdet", "1024x1024"), "reuse_result").low, 0);
  // Of another size, and as many as a batch.
  EXPECT_EQ(find(factorised("aten::linalg_solve", "512x512,512x8"), "reuse_result"), nullptr);
  EXPECT_EQ(find(factorised("aten::linalg_solve", "1024x1024,1024x8", 8), "reuse_result"), nullptr);
}

// Two layers without anything in between are one: their weights multiply to a smaller matrix.
TEST(ReduceProblem, TwoLayersThatAreOne) {
  const char *up = "M=65536,N=2048,K=512", *down = "M=65536,N=512,K=2048";
  const Advice advice = chained("aten::linear", up, down);
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Multiply in the cheaper order");
  EXPECT_TRUE(says(one, "275 GFLOP now, 35.4 GFLOP in the other order"));
  // An activation that is a part of the first product.
  EXPECT_EQ(find(chained("aten::_addmm_activation", up, down), "reduce_problem"), nullptr);
  EXPECT_EQ(find(chained("aten::_transformer_encoder_layer_fwd", up, down), "reduce_problem"),
            nullptr);
}

// Values and their number are added by one index: one change, as large as both.
TEST(ReduceInBlocks, SumsByOneIndexAreOneChange) {
  const auto added = [](const char* name, const char* shape) {
    return advised_row(name, "aten::index_add_", shape, "f32");
  };
  const Advice advice = Program()
                            .steps(kSteps,
                                   [&](Program& program) {
                                     program.kernel(added("void indexFuncLargeIndex<float, 2, 2>()",
                                                          "indices=4194304,cols=3,rows=8"),
                                                    2'000'000);
                                     program.kernel(added("void indexFuncLargeIndex<float, 1, 1>()",
                                                          "indices=4194304,cols=1,rows=8"),
                                                    1'500'000);
                                   })
                            .advice();
  const auto count =
      std::count_if(advice.interventions.begin(), advice.interventions.end(),
                    [](const Intervention& one) { return one.id == "reduce_in_blocks"; });
  EXPECT_EQ(count, 1);
  EXPECT_GT(share_of(advice, "reduce_in_blocks").mid, 0.9);
  EXPECT_EQ(find(advice, "reduce_in_blocks")->kernels.size(), 2u);
}

Advice sorted(const char* keys, double others) {
  const std::string name = std::string("void cub::DeviceRadixSortOnesweepKernel<policy_hub<") +
                           keys + ", at::cuda::cub::detail::OpaqueType<8>, unsigned long long>>()";
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               for (int i = 0; i < 8; ++i)
                 program.kernel(advised_row(name.c_str(), "aten::sort", "", "i64"), 90'000);
               program.kernel(functor("Mul", "n=16777216,inputs=2"), others);
             })
      .advice();
}

TEST(ReduceProblem, SortsOf64BitKeys) {
  const Advice advice = sorted("long", 280'000);
  const Intervention* one = find(advice, "reduce_problem");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Sort shorter keys");
  EXPECT_NEAR(one->saved_share.mid, 0.6 * 0.72, 0.02);
  EXPECT_EQ(find(sorted("int", 280'000), "reduce_problem"), nullptr);
  EXPECT_EQ(find(sorted("long", 28'000'000), "reduce_problem"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
