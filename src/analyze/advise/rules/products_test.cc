// SPDX-License-Identifier: Apache-2.0
// Products: their peaks, tiles and bytes, epilogues that do not pay; and findings that no rule
// answers.
#include "analyze/advise/learn/margins.h"
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/testing.h"
#include "analyze/advise/rules/touch.h"
#include "analyze/advise/verdict/levels.h"
#include "base/files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace purlin::analyze {
namespace {

constexpr int kRounds = 12;
constexpr const char* kOnTensorCores = "cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4";

bool tells(const Intervention* one, std::string_view words) {
  if (one == nullptr) return false;
  for (const Evidence& item : one->evidence)
    if ((item.what + ": " + item.value).find(words) != std::string::npos) return true;
  return false;
}
const Intervention* trade_of(const Advice& advice, std::string_view id) {
  for (const Intervention& one : advice.trades)
    if (one.id == id) return &one;
  return nullptr;
}
KernelRow pointwise_row(const std::string& what, std::string shape, const char* dtype = "f32") {
  const std::string name = "void at::native::vectorized_elementwise_kernel<4, at::native::" + what +
                           "Functor<float>, std::array<char*, 2ul> >(int)";
  return advised_row(name.c_str(), ("aten::" + what).c_str(), std::move(shape), dtype);
}
Advice in_rounds(const KernelRow& row, double ns) {
  return Program().steps(kRounds, [&](Program& program) { program.kernel(row, ns); }).advice();
}
KernelRow counted_row(KernelRow row, std::vector<std::pair<const char*, double>> counters) {
  for (const auto& [name, value] : counters) row.counters.push_back({name, value, 1});
  return row;
}
std::string state_of(const Advice& advice, std::string_view id) {
  for (const CheckItem& item : advice.checklist)
    if (item.id == id) return item.state;
  return "";
}

// The vector units' peak would put the roof of this product at 2 ms, though it takes 0.4 ms.
TEST(Products, Float32OnTheTensorCoresIsTf32) {
  const Advice advice =
      Program()
          .steps(kRounds,
                 [](Program& program) {
                   program.kernel(
                       advised_row(kOnTensorCores, "aten::mm", "M=4096,N=4096,K=4096", "f32"),
                       397'000);
                   program.kernel(pointwise_row("Add", "n=16777216,inputs=1"), 31'000);
                   program.kernel(pointwise_row("Relu", "n=16777216,inputs=1"), 31'000);
                 })
          .advice();
  EXPECT_TRUE(tells(find(advice, "fuse_epilogue"), "the ridge is at 103"));
}

// S48: an epilogue that costs the product more than it saves leaves the softmax whole.
TEST(Products, AnEpilogueThatDoesNotPayTakesNoKernel) {
  const double n = 67'108'864, pass = 4 * n / kBandwidth * 1e9 / 0.9;
  const Advice advice =
      Program()
          .steps(
              kRounds,
              [&](Program& program) {
                program.kernel(
                    advised_row(kOnTensorCores, "aten::mm", "M=8192,N=8192,K=8192", "f32"),
                    2'850'000);
                program.kernel(pointwise_row("Exp", "n=67108864,inputs=1"), 2 * pass);
                program.kernel(advised_row("void at::native::reduce_kernel<512, 1, "
                                           "at::native::ReduceOp<float, sum_functor<float> > >()",
                                           "aten::sum", "n=67108864,out=8192", "f32"),
                               pass);
                program.kernel(pointwise_row("Div", "n=67108864,inputs=2,in=67117056"), 2 * pass);
              })
          .advice();
  EXPECT_EQ(find(advice, "fuse_epilogue"), nullptr);
  EXPECT_TRUE(tells(find(advice, "fuse_norm"), "3 kernels of 67.11 M elements"));
}

// S51: as many FLOPs over fewer bytes; said where that crosses the ridge.
TEST(Products, AFusionThatCrossesTheRidgeSaysSo) {
  const auto advice_of = [](const char* shape, double ns, double elements) {
    return Program()
        .steps(kRounds,
               [&](Program& program) {
                 const std::string over = fmt::format("n={:.0f},inputs=1", elements);
                 program.kernel(
                     advised_row("nvjet_tst_128x256_64x4_1x2_h_bz_NNT", "aten::mm", shape, "bf16"),
                     ns);
                 program.kernel(pointwise_row("Add", over, "bf16"), 15'000);
                 program.kernel(pointwise_row("Relu", over, "bf16"), 15'000);
               })
        .advice();
  };
  const Advice thin = advice_of("M=4096,N=4096,K=256", 20'000, 16'777'216);
  EXPECT_TRUE(tells(find(thin, "fuse_epilogue"), "memory-bound in all now, compute-bound fused"));
  const Advice deep = advice_of("M=1024,N=4096,K=4096", 44'500, 4'194'304);
  EXPECT_TRUE(tells(find(deep, "fuse_epilogue"), "the ridge is at 206"));
  EXPECT_FALSE(tells(find(deep, "fuse_epilogue"), "compute-bound fused"));
}

// S64, S14: what tiles and shorter types do for an own product.
TEST(Products, TilesAndTypesHaveTheirFigures) {
  EXPECT_DOUBLE_EQ(tile_intensity(1, 1, 4), 0.25);
  EXPECT_DOUBLE_EQ(tile_intensity(32, 32, 4), 8);
  EXPECT_DOUBLE_EQ(tile_intensity(128, 128, 4), 32);
  const Advice naive = in_rounds(advised_row("naive_matmul(float*, float*, float*)", "aten::mm",
                                             "M=4096,N=4096,K=4096", "f32"),
                                 9e6);
  const Intervention* one = find(naive, "tensor_cores");
  EXPECT_TRUE(tells(one, "0.25, 8, 32; the ridge is at 14"));
  EXPECT_TRUE(tells(one, "192.0 MiB, 96.0 MiB, 48.0 MiB"));
}

// S14: half of the bytes, for kernels that wait for them alone.
TEST(Products, Float32ThatWaitsForMemoryMayBeShorter) {
  const double n = 67'108'864, time = 8 * n / kBandwidth * 1e9 / 0.9;
  const Advice advice = in_rounds(pointwise_row("Exp", "n=67108864,inputs=1"), time);
  const Intervention* trade = trade_of(advice, "shorten_tensors");
  ASSERT_NE(trade, nullptr);
  EXPECT_NEAR(trade->saved_share.mid, 0.45, 0.02);
  EXPECT_LE(trade->saved_share.high, 0.5);
  EXPECT_TRUE(tells(trade, "512.0 MiB, 256.0 MiB, 128.0 MiB"));
  EXPECT_FALSE(trade->guard.empty());
  EXPECT_EQ(trade->at, LossLevel::kRestructure);
  EXPECT_GT(trade->roi, 0);
  EXPECT_EQ(state_of(advice, "precision"), "found");
  EXPECT_EQ(trade_of(in_rounds(pointwise_row("Exp", "n=67108864,inputs=1", "bf16"), time / 2),
                     "shorten_tensors"),
            nullptr);
}

// Where the host sets the pace, shorter types save nothing: no trade of 0 %.
TEST(Products, ATradeThatSavesNothingIsNone) {
  const auto advice_of = [](std::int64_t late) {
    return Program()
        .steps(kRounds,
               [late](Program& program) {
                 const auto run = [&](const KernelRow& row, double ns) {
                   late > 0 ? program.late_kernel(row, ns, late) : program.kernel(row, ns);
                 };
                 for (int i = 0; i < 4; ++i) {
                   run(pointwise_row("Exp", "n=67108864,inputs=1"), 125'000);
                   run(advised_row("nvjet_tst_128x256_64x4_1x2_h_bz_NNT", "aten::mm",
                                   "M=4096,N=4096,K=4096", "bf16"),
                       178'000);
                 }
               })
        .advice();
  };
  EXPECT_EQ(advice_of(0).trades.size(), 2u);
  for (const Intervention& one : advice_of(400'000).trades)
    EXPECT_GE(one.saved_share.mid, 0.01) << one.id;
}

TEST(Products, ALayoutIsRestructuring) {
  for (const Rule* rule : playbook())
    for (const Remedy& remedy : rule->remedies)
      if (remedy.id == "channels_last") {
        EXPECT_EQ(loss_level(from_remedy(remedy)), LossLevel::kRestructure);
      }
}

// S83: few units busy, and the vector units at that.
TEST(Products, ALatencyBoundProductOnTheVectorUnitsIsNamed) {
  const Advice advice = in_rounds(
      counted_row(advised_row(kGemm, "", "", ""),
                  {{"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 15},
                   {"smsp__thread_inst_executed_per_inst_executed.ratio", 20},
                   {"sm__throughput.avg.pct_of_peak_sustained_elapsed", 30}}),
      1e6);
  EXPECT_NE(find(advice, "unify_branches"), nullptr);
  EXPECT_TRUE(tells(find(advice, "tensor_cores"), "a product of f32 on the vector units"));
  // Too short to be worth it: an alert without a remedy is no tick.
  const Advice small = in_rounds(advised_row(kGemm, "", "", ""), 3'000);
  EXPECT_EQ(find(small, "tensor_cores"), nullptr);
  EXPECT_EQ(state_of(small, "tensor_cores"), "open");
}

// S67
TEST(Products, NarrowLoadsOfALatencyBoundKernelAreCounted) {
  const Advice advice = in_rounds(
      counted_row(advised_row("relax(float*, int)", "", "", ""),
                  {{"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 45},
                   {"sm__throughput.avg.pct_of_peak_sustained_elapsed", 10},
                   {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 4e6},
                   {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 1e6}}),
      1e6);
  EXPECT_TRUE(tells(find(advice, "hide_latency"), "16 with 16 bytes a thread: 4.0"));
}

// S4: durations are whole nanoseconds, so the limit itself is never met exactly.
TEST(Products, SixtyPercentOfTheRoofIsSixtyPercent) {
  const double at_roof = 2.0 * 4096 * 4096 * 4096 / 989.4e12 * 1e9;
  const Advice advice = in_rounds(advised_row("nvjet_tst_128x256_64x4_1x2_h_bz_NNT", "aten::mm",
                                              "M=4096,N=4096,K=4096", "bf16"),
                                  std::ceil(at_roof / 0.6) + 1);
  EXPECT_LT(advice.kernel_utilization, 0.6);
  EXPECT_EQ(advice.verdict, "restructure") << advice.verdict_text;
}

// "16 bits at their roof" is the most, also where the replay is unsure.
TEST(Products, TheTensorCoresSaveNoMoreThanTheirRoof) {
  const double work = 2.0 * 4096 * 4096 * 4096, time = work / 60e12 * 1e9;
  const Advice advice =
      in_rounds(advised_row(kGemm, "aten::mm", "M=4096,N=4096,K=4096", "f32"), time);
  const Intervention* one = find(advice, "tensor_cores");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->estimate, "replay");
  const double at_roof = 1 - work / 989.4e12 * 1e9 / time;
  EXPECT_GE(one->saved_share.high, at_roof - 0.005);
  EXPECT_LE(one->saved_share.high, at_roof + margin_of("tensor_cores").above + 0.005);
  const Advice slow = in_rounds(pointwise_row("Exp", "n=67108864,inputs=1"), 447'000);
  ASSERT_NE(find(slow, "stream_wider"), nullptr);
  EXPECT_NEAR(find(slow, "stream_wider")->saved_share.high, 0.75, 0.01);
}

// S58: the advice pads for the tensor cores; the extents are odd all the same.
TEST(Products, OddExtentsAreNoTick) {
  const auto state = [](const char* shape) {
    return state_of(in_rounds(advised_row(kGemm, "aten::mm", shape, "f32"), 133'000), "alignment");
  };
  EXPECT_EQ(state("M=1000,N=1000,K=1001"), "open");
  EXPECT_EQ(state("M=1001,N=1000,K=1000"), "done");
}

// S6: a grey zone is decided by what a day of work saves.
TEST(Products, AGreyZoneStatesTheReturnOfBothLevels) {
  const double at_roof = 2.0 * 4096 * 4096 * 4096 / 989.4e12 * 1e9;
  const Advice advice = in_rounds(advised_row("nvjet_tst_128x256_64x4_1x2_h_bz_NNT", "aten::mm",
                                              "M=4096,N=4096,K=4096", "bf16"),
                                  at_roof / 0.45);
  EXPECT_EQ(advice.verdict, "grey");
  ASSERT_NE(find(advice, "tune_kernel"), nullptr);
  const double a_day = 100 * find(advice, "tune_kernel")->saved_share.mid / 3;
  EXPECT_NE(advice.verdict_text.find(fmt::format("{:.1f}% for a day of work", a_day)),
            std::string::npos)
      << advice.verdict_text;
}

TEST(Remedies, HaveAPortabilityThatTheSchemaKnows) {
  const auto schema =
      read_file(std::string(PURLIN_SOURCE_DIR) + "/docs/formats/advise.schema.json");
  ASSERT_TRUE(schema.is_ok());
  const std::size_t begin = schema->find("\"portability\": {\n            \"enum\"");
  ASSERT_NE(begin, std::string::npos);
  const std::string known = schema->substr(begin, schema->find(']', begin) - begin);
  for (const Remedy& remedy : remedies())
    EXPECT_NE(known.find(fmt::format("\"{}\"", remedy.portability)), std::string::npos)
        << remedy.id;
}

// A loop of factorisations is one batched call; a norm of each array is none.
TEST(Products, SmallSystemsOneByOneAreABatch) {
  const auto looped = [](const char* op, int rounds) {
    return Program()
        .steps(kSteps,
               [op, rounds](Program& program) {
                 for (int i = 0; i < rounds; ++i) {
                   program.work(5'000);
                   program.kernel(advised_row("getrf_small_kernel", op, "", "f32"), 4'000);
                   program.copy("d2d", 1'000, 4096);
                   program.kernel(advised_row("triangle_kernel", op, "", "f32"), 3'000);
                 }
               })
        .advice();
  };
  const Advice advice = looped("aten::linalg_cholesky_ex", 16);
  const Intervention* one = find(advice, "batch_products");
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(says(one, "16 a step"));
  EXPECT_NEAR(one->saved_share.mid, 0.9 * 15 / 16, 0.08);  // copies between the kernels as well
  EXPECT_EQ(find(looped("aten::linalg_vector_norm", 16), "batch_products"), nullptr);
  EXPECT_EQ(find(looped("aten::linalg_cholesky_ex", 4), "batch_products"), nullptr);
}

}  // namespace
}  // namespace purlin::analyze
