// SPDX-License-Identifier: Apache-2.0
#include "model/device/launch_counters.h"

#include <algorithm>
#include <cmath>

namespace purlin {
namespace {

struct Name {
  std::string_view metric, name;
};

constexpr Name kCounterNames[] = {
    {"sm__warps_active.avg.pct_of_peak_sustained_active", "achieved_occupancy_pct"},
    {"dram__bytes_read.sum", "dram_read_bytes"},
    {"dram__bytes_op_read.sum", "dram_read_bytes"},
    {"dram__bytes_write.sum", "dram_write_bytes"},
    {"dram__bytes_op_write.sum", "dram_write_bytes"},
    {"lts__t_bytes.sum", "l2_bytes"},
    {"l1tex__t_bytes.sum", "l1_bytes"},
    {"l1tex__t_sector_hit_rate.pct", "l1_hit_pct"},
    {"smsp__issue_active.avg.pct_of_peak_sustained_active", "issue_busy_pct"},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "tensor_busy_pct"},
    {"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", "fma_busy_pct"},
    {"sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", "alu_busy_pct"},
    {"smsp__warps_eligible.avg.per_cycle_active", "eligible_warps"},
    {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "shared_wavefronts"},
    {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "bank_conflicts"},
    {"smsp__inst_executed.sum", "instructions"}};

// The facts that measure/kernel_facts reports for every compiled kernel.
constexpr std::string_view kFacts[] = {"registers",  "shared_bytes", "local_bytes",
                                       "code_bytes", "blocks",       "threads",
                                       "occupancy",  "waves",        "estimated_occupancy"};

}  // namespace

std::map<std::string, double> launch_counters(const std::vector<std::string_view>& metrics,
                                              const std::vector<double>& values) {
  std::map<std::string_view, double> counted;
  for (std::size_t i = 0; i < std::min(metrics.size(), values.size()); ++i)
    if (std::isfinite(values[i]) && values[i] >= 0) counted[metrics[i]] = values[i];
  const auto value_of = [&](std::string_view metric) {
    const auto found = counted.find(metric);
    return found == counted.end() ? -1.0 : found->second;
  };
  std::map<std::string, double> named;
  for (const Name& each : kCounterNames)
    if (const double value = value_of(each.metric); value >= 0)
      named[std::string(each.name)] = value;
  const double hits = value_of("lts__t_sectors_lookup_hit.sum");
  const double misses = value_of("lts__t_sectors_lookup_miss.sum");
  if (hits >= 0 && misses >= 0 && hits + misses > 0)
    named["l2_hit_pct"] = 100 * hits / (hits + misses);
  const double cycles = value_of("sm__cycles_active.max");
  const double mean_cycles = value_of("sm__cycles_active.avg");
  const double clock = value_of("sm__cycles_elapsed.avg.per_second");
  if (cycles <= 0) return named;
  if (mean_cycles >= 0) named["active_sm_pct"] = 100 * mean_cycles / cycles;
  if (clock <= 0) return named;
  const double seconds = cycles / clock;
  named["counted_us"] = seconds * 1e6;
  const double peak =
      value_of("dram__bytes.sum.peak_sustained") * value_of("dram__cycles_elapsed.avg.per_second");
  if (peak > 0 && named.count("dram_read_bytes") > 0 && named.count("dram_write_bytes") > 0)
    named["dram_busy_pct"] =
        100 * (named["dram_read_bytes"] + named["dram_write_bytes"]) / (peak * seconds);
  return named;
}

bool is_hardware_counter(std::string_view name) {
  return std::find(std::begin(kFacts), std::end(kFacts), name) == std::end(kFacts);
}

}  // namespace purlin
