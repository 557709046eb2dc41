// SPDX-License-Identifier: Apache-2.0
#include "analyze/roofline/counters.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

TEST(Counters, CuptisSassInstructionsAreWeighted) {
  // AlexNet's first convolution on an A100, from HolisticTraceAnalysis' sample (MIT).
  const CounterFigures f =
      read_counters({{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 9'119'334'400, 1},
                     {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 24'780'800, 1},
                     {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 0, 1},
                     {"smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", 0, 1}},
                    0);
  EXPECT_NEAR(*f.flops / 1e9, 18.26, 0.005);
  EXPECT_EQ(f.unit, "f32");
  EXPECT_FALSE(f.dram_bytes);
}

// Capture reads one card of counters at a time: some are there and some are not yet.
TEST(Counters, WhatWasReadInPartIsNotTakenForAll) {
  constexpr const char* kBusy = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
  constexpr const char* kBf16 = "sm__ops_path_tensor_src_bf16_dst_fp32.sum";
  constexpr const char* kFma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
  EXPECT_FALSE(read_counters({{kBf16, 0, 2}}, 0).flops) << "a copy, or an fp32 kernel";
  EXPECT_FALSE(read_counters({{kBf16, 0, 2}, {kFma, 100, 1}, {kBusy, 40, 3}}, 0).flops)
      << "tensor cores work in a type whose card has not come yet";
  const CounterFigures vector = read_counters({{kBf16, 0, 2}, {kFma, 100, 1}, {kBusy, 0, 3}}, 0);
  EXPECT_EQ(vector.flops, 200);
  const CounterFigures tensor = read_counters({{kBf16, 1e12, 2}, {kBusy, 60, 3}}, 0);
  EXPECT_EQ(tensor.flops, 1e12);
  EXPECT_EQ(tensor.unit, "bf16 tensor");
}

TEST(Counters, NsightComputesRatesBecomeAmounts) {
  // saxpy over 64 Mi elements on an H200.
  const CounterFigures f = read_counters(
      {{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed", 147.27, 1},
       {"smsp__cycles_elapsed.avg", 455'700.86, 1},
       {"dram__bytes.sum.per_second", 3'381'639'163'916.39, 1},
       {"dram__bytes.sum.peak_sustained", 1504, 1},
       {"dram__cycles_elapsed.avg.per_second", 3'198'982'398.24, 1},
       {"lts__t_sectors.sum", 37'932'882, 1},
       {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 0, 1},
       {"sm__warps_active.avg.pct_of_peak_sustained_active", 74.13, 1},
       {"sm__throughput.avg.pct_of_peak_sustained_elapsed", 22.66, 1},
       {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 70.29, 1},
       {"sm__cycles_elapsed.avg.per_second", 1'958'285'476.99, 1}},
      232'704);
  EXPECT_NEAR(*f.flops, 2.0 * (64 << 20), 0.001 * 2 * (64 << 20));
  EXPECT_NEAR(*f.dram_bytes / 1e6, 786.9, 0.1);
  EXPECT_NEAR(*f.l2_bytes / 1e6, 1213.9, 0.1);
  EXPECT_NEAR(*f.dram_peak / 1e9, 4811, 1);
  EXPECT_NEAR(f.clock_mhz, 1958.3, 0.1);
  EXPECT_NEAR(*f.occupancy, 0.7413, 1e-6);
  EXPECT_NEAR(*f.memory_busy, 0.7029, 1e-6);
}

TEST(Counters, TensorOperationsAreCountedOnce) {
  const CounterFigures f =
      read_counters({{"sm__ops_path_tensor_src_bf16_dst_fp32.sum", 1e12, 1},
                     {"sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum", 1e12, 1},
                     {"sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum", 1e12, 1},
                     {"sm__ops_path_tensor_src_fp8_sparsity_off.sum", 1, 1},
                     {"sm__ops_path_tensor_src_fp8_sparsity_on.sum", 2, 1},
                     {"sm__ops_path_tensor_src_int1.sum", 77, 1},
                     {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 10, 1}},
                    1000);
  EXPECT_DOUBLE_EQ(*f.flops, 1e12 + 3 + 20);
  EXPECT_EQ(f.unit, "bf16 tensor");
}

TEST(Counters, FlopsWithoutTheTensorCoresAreNotAllFlops) {
  EXPECT_FALSE(
      read_counters({{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 10, 1},
                     {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 40, 1}},
                    1000)
          .flops);
  EXPECT_FALSE(read_counters({{"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 10, 1},
                              {"sm__inst_executed_pipe_tensor.sum", 5, 1}},
                             1000)
                   .flops);
}

TEST(Counters, AmdsAndNvprofsNames) {
  CounterFigures f = read_counters({{"SQ_INSTS_VALU_FMA_F32", 100, 1},
                                    {"SQ_INSTS_VALU_ADD_F32", 10, 1},
                                    {"SQ_INSTS_VALU_MFMA_MOPS_BF16", 1000, 1},
                                    {"TCC_EA_RDREQ_sum", 100, 1},
                                    {"TCC_EA_RDREQ_32B_sum", 20, 1},
                                    {"TCC_EA_WRREQ_sum", 50, 1},
                                    {"TCC_EA_WRREQ_64B_sum", 40, 1}},
                                   1000);
  EXPECT_DOUBLE_EQ(*f.flops, 64 * 210 + 512'000);
  EXPECT_EQ(f.unit, "bf16 tensor");
  EXPECT_DOUBLE_EQ(*f.dram_bytes, 80 * 64 + 20 * 32 + 10 * 32 + 40 * 64);
  f = read_counters({{"FETCH_SIZE", 2, 1}, {"WRITE_SIZE", 1, 1}}, 1000);
  EXPECT_DOUBLE_EQ(*f.dram_bytes, 3 * 1024);
  f = read_counters(
      {{"flop_count_sp", 7, 1}, {"dram_read_bytes", 1, 1}, {"dram_write_bytes", 2, 1}}, 0);
  EXPECT_DOUBLE_EQ(*f.flops, 7);
  EXPECT_DOUBLE_EQ(*f.dram_bytes, 3);
}

TEST(Counters, NonsenseIsNotRead) {
  const CounterFigures f = read_counters(
      {{"dram__bytes.sum", -1, 1},
       {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 0.0 / 1e-320 * 0 - 1, 1},
       {"sm__cycles_elapsed.avg.per_second", 1e30, 1}},
      1000);
  EXPECT_TRUE(f.empty());
  EXPECT_TRUE(read_counters({}, 1000).empty());
}

}  // namespace
}  // namespace purlin::analyze
