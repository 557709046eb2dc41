// SPDX-License-Identifier: Apache-2.0
// What counters and launch figures show of one kernel: spills, bank conflicts, a cache that is
// missed, registers that keep warps out; and, on devices that can, copying and computing warps.
#include "analyze/roofline/counters.h"

#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/remedies.h"
#include "analyze/stalls/stalls.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace purlin::analyze {
namespace {

constexpr Remedy kCounters[] = {
    {"remove_spills", "Keep the working set in registers", Pillar::kMemoryEfficiency,
     Level::kMemory, "memory", "days", "low", "cuda", "kernel",
     "smaller tiles or fewer accumulators per thread; constant indices into local arrays|"
     "CUDA: raise the register limit: a larger __launch_bounds__ or maxrregcount, fewer warps a "
     "block|"
     "CUDA: check with nvcc -Xptxas -v reports spill stores and loads",
     "more registers may mean fewer warps: measure both"},
    {"avoid_bank_conflicts", "Spread shared-memory accesses over the banks",
     Pillar::kMemoryEfficiency, Level::kMemory, "memory", "days", "low", "cuda", "kernel",
     "pad the tile by one element a row, or swizzle its columns by the row|"
     "wider accesses (float4) and ldmatrix for operands of tensor cores",
     ""},
    {"raise_cache_hits", "Use data while it is in the L2 cache", Pillar::kMemoryEfficiency,
     Level::kMemory, "memory", "days", "low", "api-independent", "kernel",
     "walk tiles in groups, so that neighbouring blocks share operands (swizzled block order)|"
     "split the work so that a part fits the cache|CUDA: cudaAccessPolicyWindow keeps the hot part",
     ""},
    {"fewer_registers", "Use fewer registers, so that more warps fit", Pillar::kOccupancy,
     Level::kTuning, "latency", "days", "low", "cuda", "kernel",
     "smaller arrays and tiles in registers; compute values again instead of keeping them|"
     "CUDA: __launch_bounds__(threads, blocks), maxrregcount; purlin tune over both|"
     "split the kernel where two phases need different values",
     "spills: more warps with local-memory traffic may be slower"},
    {"specialize_warps", "Let some warps copy while others compute", Pillar::kOccupancy,
     Level::kTuning, "compute", "weeks", "medium", "arch-specific", "kernel",
     "CUTLASS: KernelTmaWarpSpecializedPingpong or Cooperative; Triton: tl.range(..., "
     "warp_specialize=True)|"
     "CUDA: TMA producers, mbarriers, setmaxnreg for the consumers",
     "races: run compute-sanitizer --tool racecheck"},
    {"hide_latency", "Keep more memory requests in flight", Pillar::kMemoryEfficiency,
     Level::kMemory, "latency", "days", "low", "api-independent", "kernel",
     "independent loads before their use: unroll, float4, several elements a thread|"
     "CUDA: asynchronous copies into shared memory (cp.async, TMA), two or more stages|"
     "CUDA: check with ncu --section WarpStateStats, or purlin profile --stalls, names the waiting "
     "lines",
     ""},
    {"even_blocks", "Keep the warps of every SM busy to the end", Pillar::kOccupancy,
     Level::kParallelism, "latency", "days", "low", "api-independent", "kernel",
     "blocks of equal work: split long rows, sort or bin by length|"
     "more and smaller blocks, or a loop over a work counter|"
     "more work a launch",
     ""}};

constexpr double kManySpills = 0.05;     // of the kernel's sectors
constexpr double kManyConflicts = 0.10;  // of the wavefronts of shared memory
constexpr double kMissed = 0.30, kBusyMemory = 0.4;
constexpr double kCrowded = 0.30;
constexpr double kWarp = 32, kManyRegisters = 160, kLongKernel = 20'000;  // threads; ns

constexpr RemedyCase kMoreWarps = {
    "Give each block more warps", "hours",
    "Triton: num_warps=4 to 16 for long rows; @triton.autotune, or purlin tune, over num_warps|"
    "CUDA: 128 to 512 threads for each row, with a reduction in shared memory",
    "reductions are taken in another order"};

constexpr double kIdleUnits = 0.6;   // a unit that is busier is what limits, not latency
constexpr double kFewOfWarps = 0.5;  // achieved of what fits
constexpr double kBothLeast = 0.35, kBothMost = 0.75;
constexpr Interval3 kPart = {0.1, 0.5, 1};

class CounterRules {
 public:
  CounterRules(const Facts& facts, Advice& advice, std::size_t row)
      : facts_(facts), advice_(advice), kernel_(facts.rows.kernels[row]), row_(row) {}

  void run() {
    spills();
    conflicts();
    cache();
    registers();
    specialize();
    latency();
    uneven();
  }

 private:
  std::optional<double> counter(std::string_view name) const {
    for (const Counter& one : kernel_.counters)
      if (one.name == name) return one.value;
    return std::nullopt;
  }
  double sum(std::initializer_list<std::string_view> names) const {
    double out = 0;
    for (const std::string_view name : names) out += counter(name).value_or(0);
    return out;
  }
  void add(const Remedy& remedy, double share, std::vector<Evidence> evidence,
           const char* confidence) {
    Intervention out = from_remedy(remedy);
    share = std::min({share, 0.95, most_of_memory()});
    scale_row(facts_, row_, {1 - kPart.low * share, 1 - kPart.mid * share, 1 - kPart.high * share},
              out);
    name_kernel(kernel_, out);
    out.evidence = std::move(evidence);
    out.assumptions.emplace_back(
        "what is counted takes its part of the kernel's time: a tenth to "
        "all of that part is won");
    out.confidence = confidence;
    advice_.interventions.push_back(std::move(out));
  }

  CounterFigures figures() const {
    return read_counters(kernel_.counters, kernel_.duration.mean_ns());
  }
  // Where the SMs are the busier unit, memory takes no more of the time than it is busy, and the
  // SMs' own work stays.
  double most_of_memory() const {
    const CounterFigures now = figures();
    const double compute = now.compute_busy.value_or(0);
    if (!now.memory_busy || compute < kIdleUnits || compute <= *now.memory_busy) return 1;
    return std::min(*now.memory_busy, 1 - compute);
  }

  void spills() {
    const double sectors = sum({"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
                                "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"});
    const double others = sum({"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                               "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"});
    const double local = sum(
        {"smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum",
         "smsp__sass_inst_executed_op_local_ld.sum", "smsp__sass_inst_executed_op_local_st.sum"});
    const double all = counter("smsp__inst_executed.sum").value_or(0);
    double share = sectors > 0 ? sectors / (sectors + others) : 0;
    if (share <= 0 && local > 0) share = all > 0 ? local / all : kManySpills;
    if (share < kManySpills) return;
    std::vector<Evidence> evidence = {
        {"local memory",
         sectors > 0 ? fmt::format("{:.0f}% of the sectors of global and local "
                                   "memory",
                                   100 * share)
                     : fmt::format("{} accesses", format_count(local)),
         "counters"}};
    if (kernel_.local_bytes > 0)
      evidence.push_back({"local memory of a thread",
                          format_bytes(static_cast<double>(kernel_.local_bytes)), "launch"});
    if (kernel_.registers > 0)
      evidence.push_back({"registers of a thread", fmt::format("{}", kernel_.registers), "launch"});
    add(kCounters[0], share, std::move(evidence), "B");
  }

  void conflicts() {
    double conflicts = counter("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum").value_or(0);
    if (conflicts <= 0)
      conflicts = sum({"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                       "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"});
    double fronts = counter("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum").value_or(0);
    if (fronts <= 0)
      fronts = sum({"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"});
    if (conflicts <= 0) return;
    const double share = fronts > 0 ? std::min(1.0, conflicts / fronts) : kManyConflicts;
    if (share < kManyConflicts) return;
    const auto busy = counter("l1tex__throughput.avg.pct_of_peak_sustained_active");
    add(kCounters[1], share * (busy ? std::min(1.0, *busy / 100) : 0.5),
        {{"bank conflicts in shared memory",
          fronts > 0
              ? fmt::format("{}, {:.0f}% of the wavefronts", format_count(conflicts), 100 * share)
              : format_count(conflicts),
          "counters"}},
        fronts > 0 ? "B" : "C");
  }

  void cache() {
    const auto hits = counter("lts__t_sector_hit_rate.pct");
    if (!hits || *hits / 100 >= kMissed || kernel_.name.op_class == "elementwise" ||
        kernel_.name.op_class == "copy")
      return;
    const double busy = figures().memory_busy.value_or(kernel_.roof.memory_share);
    std::vector<Evidence> evidence = {{"L2 hit rate", fmt::format("{:.0f}%", *hits), "counters"},
                                      {"memory busy", percent(busy), "counters"}};
    if (kernel_.roof.occupancy_achieved > 0)
      evidence.push_back({"occupancy", percent(kernel_.roof.occupancy_achieved), "counters"});
    // A memory that is not busy loses by waiting, a busy one by moving.
    add(kCounters[2], (1 - *hits / 100) * (busy >= kBusyMemory ? busy : 0.3), std::move(evidence),
        "C");
  }

  // One warp holds a row that more warps would share.
  bool one_warp() {
    const auto& block = kernel_.launch.block;
    const double threads = static_cast<double>(block[0]) * block[1] * block[2];
    if (!is_of_program(kernel_) || threads > kWarp || kernel_.registers < kManyRegisters ||
        kernel_.roof.utilization >= kIdleUnits || kernel_.duration.mean_ns() < kLongKernel)
      return false;
    Intervention out = from_remedy("tune_kernel", kMoreWarps);
    scale_row(facts_, row_, {0.95, 0.65, 0.35}, out);
    name_kernel(kernel_, out);
    out.evidence.push_back(
        {problem_text(kernel_),
         fmt::format("blocks of one warp, {} registers of a thread: {} of the warps fit",
                     kernel_.registers, percent(kernel_.roof.occupancy_theoretical)),
         "launch"});
    out.assumptions.emplace_back(
        "the registers hold a row that more warps can share: a twentieth to two thirds is won");
    out.confidence = "C";
    advice_.interventions.push_back(std::move(out));
    return true;
  }

  void registers() {
    if (one_warp()) return;
    const Roof& roof = kernel_.roof;
    if (roof.occupancy_limiter != "registers" || roof.occupancy_theoretical <= 0 ||
        roof.occupancy_theoretical >= kCrowded || roof.utilization >= 0.6 ||
        from_library(kernel_) || of_framework(kernel_))
      return;
    const double wins = 1 - std::max(roof.utilization, roof.occupancy_theoretical);
    add(kCounters[3], 0.5 * wins,
        {{"registers of a thread",
          fmt::format("{}: {} of the warps fit", kernel_.registers,
                      percent(roof.occupancy_theoretical)),
          "launch"},
         {problem_text(kernel_),
          roof.utilization > 0 ? fmt::format("at {} of its roof", percent(roof.utilization))
                               : std::string("its roof is not known"),
          roof.utilization <= 0          ? "launch"
          : roof.bound_from == "counter" ? "counters"
                                         : "shape model"}},
        roof.utilization > 0 ? "C" : "D");
  }

  // Neither memory nor SMs are busy, and memory is the busier: warps wait for it, a few at a time.
  void latency() {
    const CounterFigures now = figures();
    const double memory = std::max(now.memory_busy.value_or(0), now.dram_busy.value_or(0));
    if (memory <= 0 || memory >= kIdleUnits || now.compute_busy.value_or(0) > memory ||
        is_short_launch(kernel_) || samples_stalls())
      return;
    std::vector<Evidence> evidence = {{"memory busy", percent(memory), "counters"}};
    if (now.compute_busy) evidence.push_back({"SMs busy", percent(*now.compute_busy), "counters"});
    if (const auto hits = counter("lts__t_sector_hit_rate.pct"))
      evidence.push_back({"L2 hit rate", fmt::format("{:.0f}%", *hits), "counters"});
    if (kernel_.roof.occupancy_measured)
      evidence.push_back({"occupancy", percent(kernel_.roof.occupancy_achieved), "counters"});
    if (const double sectors = sectors_per_load(kernel_); sectors > 0)
      evidence.push_back({"sectors of a load request, 16 with 16 bytes a thread",
                          fmt::format("{:.1f}", sectors), "counters"});
    add(kCounters[5], 1 - memory, std::move(evidence), now.compute_busy ? "C" : "D");
  }
  // Samples of stalls say more: they have separate rules.
  bool samples_stalls() const {
    return !read_stalls(kernel_.counters, kernel_.sampled).findings().empty();
  }

  // More warps fit than were there: blocks that end early, or too few of them.
  void uneven() {
    const Roof& roof = kernel_.roof;
    if (!roof.occupancy_measured || roof.occupancy_theoretical <= 0 ||
        roof.occupancy_achieved >= kFewOfWarps * roof.occupancy_theoretical ||
        roof.utilization >= kIdleUnits || is_short_launch(kernel_))
      return;
    add(kCounters[6], 0.5 * (1 - std::max(roof.utilization, roof.occupancy_achieved)),
        {{"occupancy",
          fmt::format("{} of the {} that fit", percent(roof.occupancy_achieved),
                      percent(roof.occupancy_theoretical)),
          "counters"},
         {"blocks of a launch", fmt::format("{}", kernel_.launch.blocks()), "launch"}},
        roof.utilization > 0 ? "C" : "D");
  }

  void specialize() {
    const Roof& roof = kernel_.roof;
    const bool both = roof.compute_share >= kBothLeast && roof.compute_share <= kBothMost &&
                      roof.memory_share >= kBothLeast && roof.memory_share <= kBothMost;
    if (!both || from_library(kernel_) || of_framework(kernel_) || !can_specialize()) return;
    add(kCounters[4], 1 - roof.utilization,
        {{problem_text(kernel_),
          fmt::format("{} of the arithmetic and {} of the bandwidth: they do not overlap",
                      percent(roof.compute_share), percent(roof.memory_share)),
          roof.bound_from == "counter" ? "counters" : "shape model"}},
        "D");
  }
  bool can_specialize() const {
    for (const DeviceInfo& device : facts_.profile->environment.devices)
      if (device.name == kernel_.device) return architecture_number(device.arch) >= 90;
    return false;
  }

  const Facts& facts_;
  Advice& advice_;
  const KernelStat& kernel_;
  std::size_t row_;
};

void add_counters(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i)
    if (facts.rows.kernels[i].name.op_class != "communication" &&
        facts.in_unit(facts.rows.kernels[i].duration.total_ns()) >=
            kSmallestRow * facts.unit.baseline_ns.mid)
      CounterRules(facts, advice, i).run();
}

}  // namespace

const Rule kCounterRule = {kCounters, add_counters};

}  // namespace purlin::analyze
