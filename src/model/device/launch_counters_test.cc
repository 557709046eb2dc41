// SPDX-License-Identifier: Apache-2.0
#include "model/device/launch_counters.h"

#include "model/device/counter_cards.h"

#include <gtest/gtest.h>

#include <cmath>

namespace purlin {
namespace {

// A copy of 256 MB on an H200, as its card came back (bench/results/counters_h200.md).
TEST(LaunchCounters, AreNamedWithUnits) {
  const std::vector<std::string_view> metrics = tuning_counters("GH100");
  std::map<std::string_view, double> counted = {
      {"sm__cycles_active.max", 259'900},
      {"sm__warps_active.avg.pct_of_peak_sustained_active", 95.2},
      {"lts__t_bytes.sum", 806'196'024},
      {"l1tex__t_bytes.sum", 536'870'912},
      {"sm__cycles_active.avg", 254'702},
      {"sm__cycles_elapsed.avg.per_second", 1.98e9},
      {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 0},
      {"smsp__issue_active.avg.pct_of_peak_sustained_active", 5.4},
      {"dram__bytes_read.sum", 262'000'000},
      {"dram__bytes_write.sum", 262'000'000},
      {"dram__bytes.sum.peak_sustained", 1536},
      {"dram__cycles_elapsed.avg.per_second", 3.2e9},
      {"smsp__inst_executed.sum", 5e6},
      {"lts__t_sectors_lookup_hit.sum", 3e6},
      {"lts__t_sectors_lookup_miss.sum", 1e6},
      {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 0},
      {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 4224},
      {"smsp__warps_eligible.avg.per_cycle_active", 0.06},
      {"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", 0.8},
      {"sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", 5.8},
      {"l1tex__t_sector_hit_rate.pct", std::nan("")}};
  std::vector<double> values;
  for (const std::string_view metric : metrics) {
    ASSERT_EQ(counted.count(metric), 1u) << metric;
    values.push_back(counted[metric]);
  }
  const auto named = launch_counters(metrics, values);
  EXPECT_NEAR(named.at("counted_us"), 131.26, 0.01);
  EXPECT_EQ(named.at("dram_read_bytes"), 262'000'000);
  EXPECT_NEAR(named.at("dram_busy_pct"), 100 * 524e6 / (1536 * 3.2e9 * 131.26e-6), 0.1);
  EXPECT_NEAR(named.at("active_sm_pct"), 98, 0.01);
  EXPECT_EQ(named.at("achieved_occupancy_pct"), 95.2);
  EXPECT_EQ(named.at("instructions"), 5e6);
  EXPECT_EQ(named.at("l2_hit_pct"), 75);
  EXPECT_EQ(named.at("bank_conflicts"), 0) << "none is a number, too";
  EXPECT_EQ(named.count("l1_hit_pct"), 0u) << "what could not be evaluated is no counter";
  for (const auto& [name, value] : named) EXPECT_TRUE(is_hardware_counter(name)) << name;
}

// Not every chip counts all of it.
TEST(LaunchCounters, AreLeftOutWhereTheCardHasThemNot) {
  const auto named = launch_counters(
      {"sm__cycles_active.max", "lts__t_bytes.sum", "dram__bytes_op_read.sum"}, {0, 7, 8});
  EXPECT_EQ(named, (std::map<std::string, double>{{"l2_bytes", 7}, {"dram_read_bytes", 8}}));
  EXPECT_TRUE(launch_counters({}, {}).empty());
  EXPECT_TRUE(tuning_counters("XX999").empty());
}

TEST(LaunchCounters, AreToldFromFactsOfTheCompiledKernel) {
  EXPECT_FALSE(is_hardware_counter("registers"));
  EXPECT_FALSE(is_hardware_counter("waves"));
  EXPECT_TRUE(is_hardware_counter("dram__sectors_read.sum"));
}

}  // namespace
}  // namespace purlin
