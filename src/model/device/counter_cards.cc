// SPDX-License-Identifier: Apache-2.0
// Which counters share a pass was found by asking cuptiProfilerHostGetNumOfPasses of CUPTI 13.0
// for combinations; counter_cards_test asks it again for these.
#include "model/device/counter_cards.h"

#include <algorithm>
#include <iterator>

namespace purlin {
namespace {

using Metrics = std::vector<std::string_view>;

enum class Family { kUnknown, kTuring, kGa100, kAmpere, kAda, kHopper, kGb100, kGb110, kGb200 };

struct Chip {
  std::string_view name;
  Family family;
  bool dram = true;    // false: a chip that shares the host's memory, which has no such counters
  bool tensor = true;  // tensor cores
};

constexpr Chip kChips[] = {{"TU102", Family::kTuring},
                           {"TU104", Family::kTuring},
                           {"TU106", Family::kTuring},
                           {"TU116", Family::kTuring, true, false},
                           {"TU117", Family::kTuring, true, false},
                           {"GA100", Family::kGa100},
                           {"GA102", Family::kAmpere},
                           {"GA103", Family::kAmpere},
                           {"GA104", Family::kAmpere},
                           {"GA106", Family::kAmpere},
                           {"GA107", Family::kAmpere},
                           {"GA10B", Family::kAmpere, false},
                           {"AD102", Family::kAda},
                           {"AD103", Family::kAda},
                           {"AD104", Family::kAda},
                           {"AD106", Family::kAda},
                           {"AD107", Family::kAda},
                           {"GH100", Family::kHopper},
                           {"GB100", Family::kGb100},
                           {"GB102", Family::kGb100},
                           {"GB110", Family::kGb110},
                           {"GB10B", Family::kGb100, false},
                           {"GB202", Family::kGb200},
                           {"GB203", Family::kGb200},
                           {"GB205", Family::kGb200},
                           {"GB206", Family::kGb200},
                           {"GB207", Family::kGb200},
                           {"GB20B", Family::kGb200, false}};

// How long a launch took, in cycles of its busiest multiprocessor. gpu__time_duration would also
// count what CUPTI does before and after the kernel: true only of a replayed one.
constexpr std::string_view kCycles = "sm__cycles_active.max";

// Operations of the tensor cores by the type of what is multiplied. Where an operation of all kinds
// takes two passes, those of each instruction share one; those with sparse inputs are left out
// then.
std::vector<Metrics> tensor(Family family) {
  switch (family) {
    case Family::kTuring:
      return {{"sm__ops_path_tensor_src_fp16_bf16_tf32_dst_fp32.sum",
               "sm__ops_path_tensor_src_fp16_dst_fp16.sum", "sm__ops_path_tensor_src_int8.sum"}};
    case Family::kGa100:
    case Family::kAmpere:
      return {{"sm__ops_path_tensor_src_bf16_dst_fp32.sum"},
              {"sm__ops_path_tensor_src_fp16_dst_fp16.sum", "sm__ops_path_tensor_src_fp64.sum"},
              {"sm__ops_path_tensor_src_fp16_dst_fp32.sum"},
              {"sm__ops_path_tensor_src_int8_sparsity_off.sum"},
              {"sm__ops_path_tensor_src_tf32_dst_fp32.sum"}};
    case Family::kAda:
      return {{"sm__ops_path_tensor_src_bf16_dst_fp32.sum"},
              {"sm__ops_path_tensor_src_fp16_dst_fp16.sum", "sm__ops_path_tensor_src_fp64.sum"},
              {"sm__ops_path_tensor_src_fp16_dst_fp32.sum"},
              {"sm__ops_path_tensor_src_fp8.sum"},
              {"sm__ops_path_tensor_src_int8_sparsity_off.sum"},
              {"sm__ops_path_tensor_src_tf32_dst_fp32.sum"}};
    case Family::kHopper:
      return {{"sm__ops_path_tensor_src_bf16_dst_fp32.sum", "sm__ops_path_tensor_src_fp8.sum"},
              {"sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum",
               "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum",
               "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum",
               "sm__ops_path_tensor_src_fp64.sum"},
              {"sm__ops_path_tensor_op_igmma_src_int8_sparsity_off.sum",
               "sm__ops_path_tensor_op_imma_src_int8_sparsity_off.sum"},
              {"sm__ops_path_tensor_src_tf32_dst_fp32.sum"}};
    case Family::kGb100:
    case Family::kGb110: {
      std::vector<Metrics> cards = {
          {"sm__ops_path_tensor_src_bf16_dst_fp32.sum"},
          {"sm__ops_path_tensor_src_fp16_dst_fp32.sum"},
          {"sm__ops_path_tensor_op_utchmma_src_fp16_dst_fp16_sparsity_off.sum",
           "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp16_sparsity_off.sum"},
          {"sm__ops_path_tensor_src_fp4_dst_fp32.sum", "sm__ops_path_tensor_src_fp64.sum"},
          {"sm__ops_path_tensor_op_utchmma_src_tf32_dst_fp32_sparsity_off.sum",
           "sm__ops_path_tensor_op_hmma_src_tf32_dst_fp32_sparsity_off.sum"}};
      if (family == Family::kGb100) {
        cards.push_back({"sm__ops_path_tensor_op_utcimma_src_int8_sparsity_off.sum",
                         "sm__ops_path_tensor_op_imma_src_int8_sparsity_off.sum"});
        cards.push_back(
            {"sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_fp8_dst_fp16_sparsity_off.sum",
             "sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_fp8_dst_fp32_sparsity_off.sum"});
      } else {
        cards.push_back({"sm__ops_path_tensor_src_int8.sum"});
        cards.push_back({"sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_dst_fp16_sparsity_off.sum",
                         "sm__ops_path_tensor_op_utcqmma_src_fp4_fp6_dst_fp32_sparsity_off.sum"});
        cards.push_back({"sm__ops_path_tensor_op_utcqmma_src_fp8_dst_fp16_sparsity_off.sum"});
        cards.push_back({"sm__ops_path_tensor_op_utcqmma_src_fp8_dst_fp32_sparsity_off.sum"});
      }
      return cards;
    }
    case Family::kGb200:
      return {{"sm__ops_path_tensor_src_bf16_dst_fp32.sum"},
              {"sm__ops_path_tensor_src_fp16_dst_fp16.sum", "sm__ops_path_tensor_src_fp64.sum"},
              {"sm__ops_path_tensor_src_fp16_dst_fp32.sum"},
              {"sm__ops_path_tensor_src_fp4_dst_fp32.sum"},
              {"sm__ops_path_tensor_src_fp4_fp6_dst_fp16.sum"},
              {"sm__ops_path_tensor_src_fp4_fp6_dst_fp32.sum"},
              {"sm__ops_path_tensor_src_fp8_dst_fp16.sum"},
              {"sm__ops_path_tensor_src_fp8_dst_fp32.sum"},
              {"sm__ops_path_tensor_src_int8.sum"},
              {"sm__ops_path_tensor_src_tf32_dst_fp32.sum"}};
    case Family::kUnknown:
      break;
  }
  return {};
}

void add(Metrics& to, const Metrics& more) { to.insert(to.end(), more.begin(), more.end()); }

Metrics dram(const Chip& chip) {
  if (!chip.dram) return {};
  if (chip.family == Family::kGb200) return {"dram__bytes_op_read.sum", "dram__bytes_op_write.sum"};
  return {"dram__bytes_read.sum", "dram__bytes_write.sum"};
}

Metrics memory(const Chip& chip) {
  Metrics metrics = {"sm__warps_active.avg.pct_of_peak_sustained_active", "lts__t_bytes.sum",
                     "l1tex__t_bytes.sum", "sm__cycles_active.avg",
                     "sm__cycles_elapsed.avg.per_second"};
  if (chip.tensor) metrics.push_back(kTensorBusy);
  if (chip.family == Family::kTuring) return metrics;  // which counts the rest in other passes
  metrics.push_back("smsp__issue_active.avg.pct_of_peak_sustained_active");
  add(metrics, dram(chip));
  if (chip.dram)
    add(metrics, {"dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second"});
  return metrics;
}

// Hits and misses of the L2, and sectors and requests of the L1, have no pass in common.
const std::vector<Metrics> kCaches = {
    {"lts__t_sectors_lookup_hit.sum", "l1tex__t_sector_hit_rate.pct"},
    {"lts__t_sectors_lookup_miss.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
     "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"},
    {"lts__t_sectors_lookup_hit.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"},
    {"lts__t_sectors_lookup_miss.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"}};

const std::vector<Metrics> kIssue = {
    {"smsp__issue_active.avg.per_cycle_active", "smsp__warps_active.avg.per_cycle_active",
     "smsp__warps_eligible.avg.per_cycle_active",
     "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
     "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"},
    {"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
     "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
     "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"},
    {"smsp__thread_inst_executed_per_inst_executed.ratio"}};

const Metrics kFlops = {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
                        "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
                        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
                        "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
                        "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
                        "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
                        "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum",
                        "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum",
                        "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum"};

const Metrics kStalls = {
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_drain_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_membar_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_misc_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_sleeping_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_tex_throttle_per_issue_active.ratio",
    "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio"};

const Chip* find_chip(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kChips), std::end(kChips),
                                         [&](const Chip& chip) { return chip.name == name; });
  return found == std::end(kChips) ? nullptr : found;
}

}  // namespace

std::vector<CounterCard> counter_cards(std::string_view name) {
  const Chip* chip = find_chip(name);
  std::vector<CounterCard> cards;
  if (chip == nullptr) return cards;
  const auto card = [&](std::string_view topic, const Metrics& metrics) {
    cards.push_back({topic, {}});
    const bool alone = topic == kInstrumentedTopic ||
                       (topic == "tensor" && chip->family == Family::kGb110);  // a second pass
    if (!alone) cards.back().metrics.push_back(kCycles);
    add(cards.back().metrics, metrics);
  };
  card("memory", memory(*chip));
  if (chip->family == Family::kTuring) card("memory", dram(*chip));
  card("flops", kFlops);  // early in the rotation: the user asked for it by name
  if (chip->tensor)
    for (const Metrics& metrics : tensor(chip->family)) card("tensor", metrics);
  for (const Metrics& metrics : kCaches) card("caches", metrics);
  for (const Metrics& metrics : kIssue) card("issue", metrics);
  return cards;
}

std::vector<std::string_view> tuning_counters(std::string_view name) {
  const Chip* chip = find_chip(name);
  if (chip == nullptr) return {};
  Metrics metrics = {kCycles};
  add(metrics, memory(*chip));
  if (chip->family == Family::kTuring) add(metrics, dram(*chip));
  add(metrics,
      {"smsp__inst_executed.sum", "l1tex__t_sector_hit_rate.pct", "lts__t_sectors_lookup_hit.sum",
       "lts__t_sectors_lookup_miss.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
       "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
       "smsp__warps_eligible.avg.per_cycle_active",
       "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
       "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active"});
  return metrics;
}

std::vector<std::string_view> full_counters(std::string_view name) {
  const Chip* chip = find_chip(name);
  if (chip == nullptr) return {};
  Metrics all = {"gpu__time_duration.sum",
                 "sm__throughput.avg.pct_of_peak_sustained_elapsed",
                 "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
                 "lts__throughput.avg.pct_of_peak_sustained_elapsed",
                 "l1tex__throughput.avg.pct_of_peak_sustained_active",
                 "lts__t_sector_hit_rate.pct",
                 "sm__cycles_elapsed.max"};
  if (chip->dram) all.push_back("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed");
  const bool blackwell = chip->family >= Family::kGb100;
  if (!blackwell)
    all.push_back("smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio");
  if (chip->family == Family::kHopper)
    all.push_back("smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio");
  add(all, kStalls);
  for (const CounterCard& card : counter_cards(name)) add(all, card.metrics);
  Metrics once;
  for (const std::string_view metric : all)
    if (std::find(once.begin(), once.end(), metric) == once.end()) once.push_back(metric);
  return once;
}

bool parse_counter_topics(std::string_view text, std::vector<std::string_view>& topics) {
  topics.clear();
  if (text == "all") {
    topics.assign(std::begin(kCounterTopics), std::end(kCounterTopics));
    return true;
  }
  if (text.empty()) {
    for (const std::string_view topic : kCounterTopics)
      if (topic != kInstrumentedTopic) topics.push_back(topic);
    return true;
  }
  while (!text.empty()) {
    const std::string_view wanted = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), wanted.size() + 1));
    const auto* const known =
        std::find(std::begin(kCounterTopics), std::end(kCounterTopics), wanted);
    if (known == std::end(kCounterTopics)) return false;
    if (std::find(topics.begin(), topics.end(), *known) == topics.end()) topics.push_back(*known);
  }
  return !topics.empty();
}

}  // namespace purlin
