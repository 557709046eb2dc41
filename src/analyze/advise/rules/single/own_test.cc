// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

KernelRow own(std::uint32_t blocks, std::uint32_t threads, std::uint32_t registers = 32) {
  KernelRow out = advised_row("orbits_kernel", "", "", "");
  out.launch.grid = {blocks, 1, 1};
  out.launch.block = {threads, 1, 1};
  out.registers = registers;
  return out;
}
Advice of(const KernelRow& row, double ns = 1'000'000) {
  return Program().steps(kSteps, [&](Program& program) { program.kernel(row, ns); }).advice();
}

TEST(WholeWaves, OfAnOwnKernelWhoseWorkIsNotKnown) {
  // 264 blocks of 1,024 threads run at a time: the eight more run alone, one for each SM.
  const Advice advice = of(own(272, 1024));
  const Interval3 saved = share_of(advice, "whole_waves");
  EXPECT_NEAR(saved.mid, 1 - (272.0 / 264) / 1.5, 0.01);
  EXPECT_NEAR(saved.high, 1 - (272.0 / 264) / 2, 0.06);
  EXPECT_LE(saved.low, 0);
  for (const std::uint32_t blocks : {264u, 528u, 200u, 26'400u})
    EXPECT_EQ(find(of(own(blocks, 1024)), "whole_waves"), nullptr) << blocks;
  EXPECT_EQ(find(of(own(272, 1024), 6'000), "whole_waves"), nullptr);
}

TEST(TuneKernel, ABlockOfOneWarpThatHoldsALongRow) {
  const Advice advice = of(own(8192, 32, 255), 200'000);
  const Intervention* one = find(advice, "tune_kernel");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Give each block more warps");
  EXPECT_NEAR(one->saved_share.mid, 0.35, 0.01);
  EXPECT_EQ(find(advice, "fewer_registers"), nullptr);
  for (const KernelRow& other : {own(8192, 32, 64), own(8192, 256, 255)}) {
    const Advice another = of(other, 200'000);
    EXPECT_TRUE(find(another, "tune_kernel") == nullptr ||
                find(another, "tune_kernel")->title != one->title);
  }
}

// 65,536 blocks of 128 threads hold 0.6 GB of values in their registers: 0.13 ms at the bandwidth.
TEST(TuneKernel, AnOwnKernelFarFromWhatItsRegistersHold) {
  const Advice advice = of(own(65'536, 128, 30), 1'090'000);
  const Intervention* one = find(advice, "tune_kernel");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Tune the own kernel: it moves little for its time");
  EXPECT_NEAR(one->saved_share.mid, 0.5, 0.02);
  EXPECT_EQ(one->confidence, "D");
  EXPECT_EQ(find(of(own(65'536, 128, 30), 400'000), "tune_kernel"), nullptr);
  // Few registers hold addresses alone: records whose fields are far apart.
  EXPECT_NE(find(of(own(65'536, 128, 16), 300'000), "tune_kernel"), nullptr);
  KernelRow staged = own(65'536, 128, 30);
  staged.launch.dynamic_shared_bytes = 96 << 10;
  EXPECT_EQ(find(of(staged, 1'090'000), "tune_kernel"), nullptr);
  // Of a library, of the framework, and one that takes a small part of the step.
  KernelRow other = own(65'536, 128, 30);
  other.name = "void thrust::some_kernel<int>(int)";
  EXPECT_EQ(find(of(other, 1'090'000), "tune_kernel"), nullptr);
  other.name = "orbits_kernel";
  other.op = "aten::mul";
  EXPECT_EQ(find(of(other, 1'090'000), "tune_kernel"), nullptr);
  const Advice part =
      Program()
          .steps(kSteps,
                 [&](Program& program) {
                   program.kernel(own(65'536, 128, 30), 1'090'000);
                   program.kernel(functor("Add", "n=1073741824,inputs=2"), 4'000'000);
                 })
          .advice();
  EXPECT_EQ(find(part, "tune_kernel"), nullptr);
}

// A quarter of the threads that fit, each in a long loop.
TEST(TuneKernel, AnOwnKernelWithFewThreadsInFlight) {
  const Advice advice = of(own(132, 512, 16), 380'000);
  const Intervention* one = find(advice, "tune_kernel");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Tune the own kernel: few threads are in flight");
  EXPECT_EQ(one->confidence, "D");
  EXPECT_TRUE(says(one, "25.0%"));
  EXPECT_TRUE(advice.unknown_roofs.empty());
  // Short; most places taken; and a launch that somebody has laid out.
  EXPECT_EQ(find(of(own(132, 512, 16), 20'000), "tune_kernel"), nullptr);
  EXPECT_EQ(find(of(own(396, 512, 16), 380'000), "tune_kernel"), nullptr);
  const auto says_so = [](const KernelRow& row) {
    const Advice other = of(row, 380'000);
    const Intervention* tune = find(other, "tune_kernel");
    return tune != nullptr && tune->title == "Tune the own kernel: few threads are in flight";
  };
  EXPECT_FALSE(says_so(own(132, 512, 128)));
  KernelRow staged = own(132, 512, 16);
  EXPECT_TRUE(says_so(staged));
  staged.launch.dynamic_shared_bytes = 96 << 10;
  EXPECT_FALSE(says_so(staged));
}

TEST(TuneKernel, BlocksThatEndAsSoonAsTheyBegin) {
  const Advice advice = of(own(1'048'576, 256, 16), 790'000);
  const Intervention* one = find(advice, "tune_kernel");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Give each block more work");
  EXPECT_NEAR(one->saved_share.mid, 0.65, 0.02);
  EXPECT_EQ(find(of(own(1'048'576, 256, 16), 2'400'000), "tune_kernel"), nullptr);
  // A wave of 0.87 us, and of 0.89: memory is busy meanwhile. It is not where few warps fit.
  const double waves = 1'048'576.0 / (8 * 132);
  EXPECT_NE(find(of(own(1'048'576, 256, 16), 870 * waves), "tune_kernel"), nullptr);
  EXPECT_EQ(find(of(own(1'048'576, 256, 16), 890 * waves), "tune_kernel"), nullptr);
  KernelRow few = own(1'048'576, 256, 16);
  few.launch.dynamic_shared_bytes = 56 << 10;
  EXPECT_NE(find(of(few, 1'450 * 2 * waves), "tune_kernel"), nullptr);
  EXPECT_EQ(find(of(few, 1'550 * 2 * waves), "tune_kernel"), nullptr);
}

Advice filled(const char* count, double ns, std::uint32_t registers = 28) {
  const KernelRow fill = advised_row(
      "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>()",
      "aten::fill_", count, "f32");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(fill, 2'000);
               program.kernel(own(16'384, 128, registers), ns);
             })
      .advice();
}

TEST(ReduceInBlocks, AnOwnKernelThatAddsToWhatWasFilled) {
  const Advice advice = filled("n=16384,inputs=0", 1'900'000);
  const Intervention* one = find(advice, "reduce_in_blocks");
  ASSERT_NE(one, nullptr);
  EXPECT_NEAR(one->saved_share.mid, 0.5, 0.02);
  EXPECT_LE(one->saved_share.low, 0);
  EXPECT_GT(one->saved_share.high, 0.98);
  EXPECT_EQ(one->confidence, "D");
  // A kernel of many registers computes. As fast as to read some; and a fill for each thread.
  EXPECT_EQ(find(filled("n=16384,inputs=0", 1'900'000, 64), "reduce_in_blocks"), nullptr);
  EXPECT_EQ(find(filled("n=16384,inputs=0", 60'000), "reduce_in_blocks"), nullptr);
  EXPECT_EQ(find(filled("n=2097152,inputs=0", 1'900'000), "reduce_in_blocks"), nullptr);
}

// Kernels of one op on one problem are changed together; those of two are not.
TEST(FillTheDevice, KernelsOfOneOpAreOneChange) {
  const auto sums = [](const char* second) {
    const auto kernel = [](const char* name, const char* op) {
      KernelRow out = advised_row(name, op, "rows=2,cols=4194304", "f32");
      out.launch.grid = {2, 1, 1};
      return out;
    };
    return Program()
        .steps(kSteps,
               [&](Program& program) {
                 program.kernel(kernel("collect_statistics", "aten::native_batch_norm"), 8e5);
                 program.kernel(kernel("transform_input", second), 2e5);
               })
        .advice();
  };
  const auto changes = [](const Advice& advice) {
    return std::count_if(advice.interventions.begin(), advice.interventions.end(),
                         [](const Intervention& one) { return one.id == "fill_the_device"; });
  };
  const Advice one = sums("aten::native_batch_norm"), two = sums("aten::native_layer_norm");
  EXPECT_EQ(changes(one), 1);
  EXPECT_EQ(changes(two), 2);
  EXPECT_EQ(find(one, "fill_the_device")->kernels.size(), 2u);
  EXPECT_GT(share_of(one, "fill_the_device").mid, share_of(two, "fill_the_device").mid + 0.1);
}

Advice tall(const char* shape, double ns) {
  return of(advised_row("sm80_xmma_gemm_f32f32_f32f32_f32_nt_n_tilesize32x32x8_cublas", "aten::mm",
                        shape, "f32"),
            ns);
}

TEST(FillTheDevice, ASumOfATallMatrix) {
  const Advice advice = tall("M=16,N=16,K=4194304", 360'000);
  const Intervention* one = find(advice, "fill_the_device");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Share a long sum out over more blocks");
  const double used = 2 * 4.0 * 16 * (1 << 22) / kBandwidth * 1e9 / 360'000;
  EXPECT_NEAR(one->saved_share.mid, 0.25 * (1 - used), 0.02);
  EXPECT_EQ(find(tall("M=1024,N=1024,K=4096", 360'000), "fill_the_device"), nullptr);
  EXPECT_EQ(find(tall("M=16,N=16,K=4194304", 120'000), "fill_the_device"), nullptr);
}

Advice accumulated(const char* op, const char* count) {
  const KernelRow fill = advised_row(
      "void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<c10::Half>>()",
      "aten::fill_", count, "f16");
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(fill, 40'000);
               program.kernel(advised_row("nvjet_sm90_hsh_256x128_64x4_1x2_h_badd_coopA_NNT", op,
                                          "B=16,M=2048,N=2048,K=64", "f16"),
                              100'000);
             })
      .advice();
}

TEST(RemoveFills, AProductThatAddsToZeros) {
  const Advice advice = accumulated("aten::baddbmm_", "n=67108864,inputs=0");
  const Intervention* one = find(advice, "remove_fills");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Multiply without an accumulator of zeros");
  const double bytes = 2.0 * 16 * 64 * 4096, out = 2.0 * 16 * 2048 * 2048;
  const double left = 100'000 * (bytes + out) / (bytes + 2 * out);
  EXPECT_NEAR(one->saved_share.mid, 1 - left / 140'000, 0.03);
  // Another array was filled, and a product that does not add: half of the fills, as everywhere.
  for (const auto& [op, count] :
       {std::pair{"aten::baddbmm_", "n=8388608,inputs=0"}, {"aten::bmm", "n=67108864,inputs=0"}})
    EXPECT_NEAR(share_of(accumulated(op, count), "remove_fills").mid, 0.5 * 40 / 140, 0.03) << op;
}

// Other fills take far longer: those are what there is to say.
TEST(RemoveFills, OneAccumulatorAmongManyFills) {
  const KernelRow fill = advised_row(
      "void at::native::vectorized_elementwise_kernel<8, at::native::FillFunctor<c10::Half>>()",
      "aten::fill_", "n=67108864,inputs=0", "f16");
  const Advice advice =
      Program()
          .steps(kSteps,
                 [&](Program& program) {
                   for (int i = 0; i < 4; ++i) program.kernel(fill, 40'000);
                   program.kernel(advised_row("nvjet_sm90_hsh_256x128_64x4_1x2_h_badd_coopA_NNT",
                                              "aten::baddbmm_", "B=16,M=2048,N=2048,K=64", "f16"),
                                  100'000);
                 })
          .advice();
  const Intervention* one = find(advice, "remove_fills");
  ASSERT_NE(one, nullptr);
  EXPECT_NE(one->title, "Multiply without an accumulator of zeros");
  EXPECT_NEAR(one->saved_share.mid, 0.5 * 160 / 260, 0.03);
}

Advice sparse(const char* name, double ns) {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               program.kernel(advised_row(name, "aten::addmm", "", "f32"), ns);
               program.kernel(functor("Mul", "n=16777216,inputs=2"), 50'000);
             })
      .advice();
}

TEST(LocalGathers, OfASparseProduct) {
  const char* name = "void cusparse::csrmm_alg2_kernel<false, int, float>()";
  const Advice advice = sparse(name, 700'000);
  const Intervention* one = find(advice, "local_gathers");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Number the nodes so that neighbours are near");
  EXPECT_NEAR(one->saved_share.mid, 0.25 * 700 / 750, 0.01);
  EXPECT_LE(one->saved_share.low, 0);
  EXPECT_EQ(find(sparse(name, 4'000), "local_gathers"), nullptr);
  EXPECT_EQ(find(sparse("void cusparse::vector_scale<float>()", 700'000), "local_gathers"),
            nullptr);
}

// Two million points in a volume of 268 MB: 68 us where each byte is read once.
Advice sampled(double ns, const char* op = "aten::grid_sampler_3d") {
  return Program()
      .steps(kSteps,
             [&](Program& program) {
               with_inputs(program, op, "1x4x256x256x256,1x1x1x2097152x3", [&](Program& inner) {
                 inner.kernel(advised_row("grid_sampler_3d_kernel<float, int>", op, "", "f32"), ns);
               });
             })
      .advice();
}

TEST(LocalGathers, OfPointsThatSampleAVolume) {
  const Advice advice = sampled(820'000);
  const Intervention* one = find(advice, "local_gathers");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Sample the points in an order in which neighbours are near");
  const double once = 4 * (4 * 16'777'216.0 + 3 * 2'097'152 + 4 * 2'097'152) / kBandwidth * 1e9;
  EXPECT_NEAR(one->saved_share.mid, 1 - 3 * once / 820'000, 0.02);
  EXPECT_EQ(find(sampled(250'000), "local_gathers"), nullptr);
  EXPECT_EQ(find(sampled(820'000, "aten::upsample_trilinear3d"), "local_gathers"), nullptr);
}

Advice bags(const char* shape) {
  const KernelRow sums =
      advised_row("void at::native::EmbeddingBag_updateOutputKernel_sum_mean<float, long>()",
                  "aten::_embedding_bag_forward_only", shape, "f32");
  return Program()
      .steps(kSteps, [&](Program& program) { program.kernel(sums, 2'000'000); })
      .advice();
}

TEST(FillTheDevice, LongBagsOfWhichAThreadAddsAColumn) {
  const Advice advice = bags("indices=262144,cols=64,rows=200000,bags=16");
  const Intervention* one = find(advice, "fill_the_device");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->title, "Share long bags out over more threads");
  EXPECT_NEAR(one->saved_share.mid, 0.78, 0.04);
  EXPECT_EQ(find(advice, "local_gathers"), nullptr);  // the order of the rows is not at fault
  // Many bags, and short ones.
  const Advice many = bags("indices=262144,cols=64,rows=200000,bags=2048");
  EXPECT_EQ(find(many, "fill_the_device"), nullptr);
  EXPECT_NE(find(many, "local_gathers"), nullptr);
  EXPECT_EQ(find(bags("indices=1024,cols=64,rows=200000,bags=16"), "fill_the_device"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
