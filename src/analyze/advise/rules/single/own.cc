// SPDX-License-Identifier: Apache-2.0
// Own kernels that set the pace, of which only the launch is known. Their blocks end as soon as
// they have begun, or their threads take far longer than to move what their registers hold.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr RemedyCase kLargerBlocks = {
    "Give each block more work", "hours",
    "Triton: a larger BLOCK, 1,024 elements or more for 4 warps; fewer warps for a short row|"
    "CUDA: several elements a thread, 16-byte loads; a loop over the grid|"
    "purlin tune SPEC over block size and warps; purlin init writes the SPEC of an own kernel",
    ""};
constexpr RemedyCase kFarFromMemory = {
    "Tune the own kernel: it moves little for its time", "days",
    "neighbouring threads at neighbouring addresses; turn a tile in shared memory|"
    "a product: larger tiles, 3 or more stages, tensor cores (tl.dot, wgmma)|"
    "purlin tune SPEC over tile, stages and warps; purlin init writes the SPEC of an own kernel|"
    "to know its roof: purlin advise --shape KERNEL=PROBLEM, or --counters",
    "a kernel that computes much for each value, or loops over much data, may be at its roof"};

constexpr RemedyCase kInFlight = {
    "Tune the own kernel: few threads are in flight", "days",
    "more threads: blocks for all places of the SMs, or a loop over the grid with more of them|"
    "several independent loads in each turn of a loop, of 16 bytes each|"
    "neighbouring threads at neighbouring addresses|"
    "purlin tune SPEC over block size and grid; purlin init writes the SPEC of an own kernel|"
    "to know its roof: purlin advise --shape KERNEL=PROBLEM, or --counters",
    "a kernel whose threads each compute much may be at its roof"};

constexpr double kDominates = 0.3;   // of the unit
constexpr double kLongOwn = 50'000;  // ns
// ns, of a wave of blocks that start, read once, write and drain. Six own kernels of 1 and 2 bytes
// a value took 0.74 to 0.86 us. Four that keep the memory busy, and gained nothing by larger
// blocks, took 0.90 to 1.3 us. Where at most half of the warps fit, memory cannot be as busy.
constexpr double kShortBlock = 880, kShortBlockOfFew = 1'500;
constexpr double kManyWaves = 64;
constexpr double kHalfFull = 0.5;              // of the places for threads or warps, at most
constexpr std::uint32_t kTunedRegisters = 96;  // so many are taken on purpose
// Of shared memory for a block: as much holds several stages of tiles, so somebody tuned it.
constexpr double kSeveralStages = 64 << 10;
constexpr double kRegisterBytes = 4;
constexpr double kNoData = 12, kLeastData = 2;  // registers of addresses and indices; of values
constexpr double kTimesRegisters = 4;           // the time of moving what all registers hold, once
// What is left. Nine own kernels that were slow on purpose took 2 to 70 % of their time afterwards
// (bench/results/advice_pairs.md, advice_pairs_later.md).
constexpr Interval3 kOfLargerBlocks = {0.7, 0.35, 0.08}, kOfTuned = {0.98, 0.5, 0.06};
constexpr std::string_view kOtherRules[] = {"tune_kernel",     "whole_waves", "reduce_in_blocks",
                                            "fill_the_device", "coalesce",    "stream_wider"};

// Named by the program itself, not within a library's namespace, and launched by no op of
// PyTorch's.
bool is_own(const KernelStat& kernel) {
  return is_of_program(kernel) && !starts_with(kernel.op, "aten::") &&
         kernel.roof.utilization <= 0 && kernel.name.op_class != "communication" &&
         kernel.name.op_class != "optimizer" && kernel.name.full.find("::") == std::string::npos &&
         !starts_with(kernel.name.full, "triton_");
}

bool is_advised(const Advice& advice, const KernelStat& kernel) {
  return std::any_of(
      advice.interventions.begin(), advice.interventions.end(), [&](const Intervention& one) {
        return std::find(std::begin(kOtherRules), std::end(kOtherRules), one.id) !=
                   std::end(kOtherRules) &&
               std::find(one.kernels.begin(), one.kernels.end(), kernel.label) != one.kernels.end();
      });
}

void judge_own_kernel(const Facts& facts, std::size_t row, Advice& advice) {
  const KernelStat& kernel = facts.rows.kernels[row];
  const double ns = kernel.duration.mean_ns(), waves = waves_of(facts, kernel);
  const double bandwidth = facts.bandwidth_of(kernel);
  const double shared = kernel.launch.dynamic_shared_bytes + kernel.static_shared_bytes;
  const bool sparse = waves > 0 && waves <= kHalfFull && kernel.registers < kTunedRegisters &&
                      shared < kSeveralStages;
  if ((waves < 1 && !sparse) || bandwidth <= 0 || ns < kLongOwn) return;
  const bool few = kernel.roof.occupancy_theoretical <= kHalfFull;
  const bool short_blocks =
      waves >= kManyWaves && ns < (few ? kShortBlockOfFew : kShortBlock) * waves;
  const double values = std::max(kLeastData, kernel.registers - kNoData);
  const double held = threads_of(kernel) * values * kRegisterBytes / bandwidth * 1e9;
  if (!short_blocks && !sparse && (ns < kTimesRegisters * held || shared >= kSeveralStages)) return;
  Intervention out = from_remedy("tune_kernel", short_blocks ? kLargerBlocks
                                                : sparse     ? kInFlight
                                                             : kFarFromMemory);
  scale_row(facts, row, short_blocks ? kOfLargerBlocks : kOfTuned, out);
  name_kernel(kernel, out);
  out.evidence.push_back(
      {short_label(kernel),
       fmt::format("{}{}, no roof is known: no shape and no counters",
                   short_ns(facts.in_unit(kernel.duration.total_ns())), a_unit(facts)),
       "timeline"});
  out.evidence.push_back(
      short_blocks
          ? Evidence{"time of a wave of blocks",
                     fmt::format("{}, of {} waves; a block takes as long to start and drain",
                                 short_ns(ns / waves), si(waves, "")),
                     "launch"}
      : sparse
          ? Evidence{"threads, of the places for them",
                     fmt::format("{}, {}", si(threads_of(kernel), ""), percent(waves)), "launch"}
          : Evidence{
                "time to move what the registers of all threads hold, without 12 for addresses",
                fmt::format("{}, of {} a launch", short_ns(held), short_ns(ns)), "launch"});
  out.assumptions.emplace_back(
      "a guess by the launch alone: the interval is that of own kernels that were measured before "
      "and after");
  out.confidence = "D";
  advice.interventions.push_back(std::move(out));
}

void add_own(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  for (std::size_t i = 0; i < facts.rows.kernels.size(); ++i) {
    const KernelStat& kernel = facts.rows.kernels[i];
    const double ns = facts.in_unit(kernel.duration.total_ns());
    if (is_own(kernel) && ns >= kDominates * facts.unit.baseline_ns.mid &&
        !is_advised(advice, kernel))
      judge_own_kernel(facts, i, advice);
  }
}

}  // namespace

const Rule kOwnRule = {{}, add_own};

}  // namespace purlin::analyze
