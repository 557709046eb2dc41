// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace purlin::analyze {
namespace {

using MadeUp = std::vector<std::pair<const char*, double>>;
Advice busy_units(double sm_busy, double memory_busy, MadeUp counters) {
  counters.emplace_back("sm__throughput.avg.pct_of_peak_sustained_elapsed", sm_busy);
  counters.emplace_back("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                        memory_busy);
  const KernelRow row = with_counters(advised_row("relax(float*, int)", "", "", ""), counters);
  return Program().steps(kSteps, [&row](Program& program) { program.kernel(row, 1e6); }).advice();
}
const MadeUp kSpilled = {{"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", 4e5},
                         {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1e5}};
const MadeUp kMissed = {{"lts__t_sector_hit_rate.pct", 10}};
const MadeUp kConflicts = {{"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 5e4},
                           {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 1e5}};

// Memory that is busy 6 % of the time takes no more of it, however its sectors divide.
TEST(Counters, AKernelThatTheSmsHoldUpGainsLittleFromItsMemory) {
  for (const auto& [id, counters] :
       {std::pair{"remove_spills", kSpilled}, std::pair{"raise_cache_hits", kMissed},
        std::pair{"avoid_bank_conflicts", kConflicts}}) {
    EXPECT_LE(share_of(busy_units(92, 6, counters), id).high, 0.08) << id;
    EXPECT_GT(share_of(busy_units(30, 70, counters), id).high, 0.2) << id;
  }
  EXPECT_NEAR(share_of(busy_units(30, 70, kSpilled), "remove_spills").mid, 0.4, 0.02);
}

// No user sets the registers of a library's kernel, though its name is CUTLASS's.
TEST(Counters, RegistersOfALibraryStay) {
  const auto advice_for = [](const char* op) {
    KernelRow row = advised_row(
        "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_32x2_tn_align2>()",
        op, "M=4096,N=4000,K=4096", "bf16");
    row.registers = 255;
    return Program().steps(kSteps, [&row](Program& program) { program.kernel(row, 6e5); }).advice();
  };
  EXPECT_NE(find(advice_for(""), "fewer_registers"), nullptr);
  EXPECT_EQ(find(advice_for("aten::mm"), "fewer_registers"), nullptr);
  EXPECT_FALSE(says(find(advice_for("aten::mm"), "tune_kernel"), "FLOP/B without tiles"));
}

}  // namespace
}  // namespace purlin::analyze
