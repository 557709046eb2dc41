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

// Patches that a program writes out for its product; of a caller's kernel with another name, none.
TEST(Copies, PatchesForAProductGo) {
  const auto advice_of = [](const char* name) {
    return Program()
        .steps(kSteps,
               [name](Program& program) {
                 for (int image = 0; image < 16; ++image)
                   program.kernel(advised_row(name, "aten::im2col", "", "f16"), 8'000);
                 program.kernel(product("B=16,M=128,N=4096,K=576"), 72'000);
               })
        .advice();
  };
  EXPECT_NEAR(
      share_of(advice_of("void at::native::im2col_kernel<c10::Half>()"), "remove_copies").mid,
      0.95 * 128 / 200, 0.02);
  EXPECT_EQ(find(advice_of("void patches_kernel<c10::Half>()"), "remove_copies"), nullptr);
}

KernelRow rows_by_block(const char* shape, std::uint32_t rows) {
  KernelRow row = advised_row("void at::native::vectorized_gather_kernel<16, long>(char*)",
                              "aten::gather", shape, "f16");
  row.launch.grid = {rows, 1, 1};
  return row;
}

// An index for each element is that of its row, repeated: a row has a block.
TEST(Copies, AnArrayInAnotherOrderIsACopy) {
  const auto advice_of = [](const char* shape, std::uint32_t rows) {
    return Program()
        .steps(kSteps,
               [&](Program& program) { program.kernel(rows_by_block(shape, rows), 200'000); })
        .advice();
  };
  constexpr const char* kAll = "indices=16777216,cols=1,rows=16777216";
  EXPECT_NEAR(share_of(advice_of(kAll, 32), "remove_copies").mid, 0.75, 0.02);
  EXPECT_EQ(find(advice_of(kAll, 16'777'216), "remove_copies"), nullptr);
  EXPECT_EQ(find(advice_of("indices=8388608,cols=1,rows=16777216", 16), "remove_copies"), nullptr);
}

// A block for each row takes its time in any order: of seven measured pairs none gained by an
// order.
TEST(Copies, RowsByBlockAreAsSlowInAnyOrder) {
  const auto advice_of = [](const char* name) {
    KernelRow row = rows_by_block("indices=16777216,cols=1,rows=16777216", 16'777'216);
    row.name = name;
    return Program()
        .steps(kSteps, [&](Program& program) { program.kernel(row, 2'500'000); })
        .advice();
  };
  EXPECT_EQ(find(advice_of("void at::native::vectorized_gather_kernel<16, long>(char*)"),
                 "local_gathers"),
            nullptr);
  EXPECT_NE(find(advice_of("void at::native::_scatter_gather_elementwise_kernel<128, 8>()"),
                 "local_gathers"),
            nullptr);
}

// A stencil by rolls: each copy is read by the sum behind it.
TEST(Copies, RollsAreFusedWithTheirReaders) {
  const auto advice_of = [](const char* name) {
    return Program()
        .steps(kSteps,
               [name](Program& program) {
                 for (int side = 0; side < 4; ++side) {
                   program.kernel(advised_row(name, "aten::roll", "n=16777216,inputs=1", "f32"),
                                  60'000);
                   program.kernel(functor("Add", "n=16777216,inputs=2"), 60'000);
                 }
                 program.kernel(functor("Mul", "n=16777216,inputs=1"), 40'000);
               })
        .advice();
  };
  EXPECT_GT(share_of(advice_of("void roll_cuda_kernel<float>(float const*)"), "fuse_pointwise").mid,
            0.7);
  EXPECT_LT(share_of(advice_of("void flip_of_a_caller<float>(float const*)"), "fuse_pointwise").mid,
            0.5);
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

// Where the host sets the pace, the op without its conversion keeps most of the host's time.
TEST(Copies, CastsUnderAHostThatSetsThePace) {
  const auto share = [](std::int64_t host) {
    const Advice advice =
        Program()
            .steps(kSteps,
                   [host](Program& program) {
                     for (int layer = 0; layer < 8; ++layer) {
                       program.work(host);
                       program.kernel(conversion("n=16777216,inputs=1,in=16777216,read=67108864,"
                                                 "write=33554432"),
                                      30'000);
                       program.work(host);
                       program.kernel(product("M=512,N=4096,K=4096"), 30'000);
                     }
                   })
            .advice();
    return share_of(advice, "cast_weights_once");
  };
  const Interval3 device = share(1'000), host = share(60'000);
  EXPECT_GT(device.low, 0.75 * device.mid);
  EXPECT_GT(host.mid, 0);
  EXPECT_LT(host.low, 0.6 * host.mid);
}

TEST(Copies, OfACacheBeforeOneQueryMayMoveTheCostToTheAttention) {
  const auto share = [](const char* attention) {
    const KernelRow clone = advised_row(
        "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>()",
        "aten::copy_", "n=33554432,inputs=1", "bf16");
    const KernelRow reader = advised_row("void pytorch_flash::flash_fwd_kernel<Traits>()",
                                         "aten::_flash_attention_forward", attention, "bf16");
    const Advice advice = Program()
                              .steps(kSteps,
                                     [&](Program& program) {
                                       program.kernel(clone, 90'000);
                                       program.kernel(clone, 90'000);
                                       program.kernel(reader, 40'000);
                                     })
                              .advice();
    return share_of(advice, "remove_copies");
  };
  const Interval3 one = share("B=16,H=16,Sq=1,Sk=2048,D=64"),
                  all = share("B=16,H=16,Sq=2048,Sk=2048,D=64");
  EXPECT_NEAR(one.mid, all.mid, 0.05);
  EXPECT_LT(one.low, all.low - 0.1);
}

}  // namespace
}  // namespace purlin::analyze
